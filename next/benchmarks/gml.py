"""RISE, logRISE and RPLE of ±1 variables beside the reference answers of GraphicalModelLearning.jl.

The folder holds MODEL_samples.csv (a column of counts, then spins) and MODEL_ESTIMATOR_learned.csv, the symmetric part
of the answers, for the models a and b. Their density is ∝ exp(+Σ θ s), and λ = c √(log(p²/0.05)/N). The answers carry
the error of the solver that made them: an exact minimiser is within 5e-8.

    python benchmarks/gml.py FOLDER
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from isodus import ISODUS, L1, IsodusWarning, PowerReference, PseudoLikelihood

GOAL = 5e-8


def estimators(p, count):
    """Each with its λ; RPLE's loss is pseudo-likelihood's."""
    unit = np.sqrt(np.log(p**2 / 0.05) / count)

    def screening(link, c):
        return ISODUS(2, reference=PowerReference(1.0, link=link), support="spin", penalty=penalty(c), **exact)

    def penalty(c):
        return L1(c * unit, units="raw", refit=False)

    exact = {"consensus": "mean", "tol": 1e-9}
    return {
        "RISE": screening("plain", 0.4),
        "logRISE": screening("log", 0.8),
        "RPLE": PseudoLikelihood(2, support="spin", penalty=penalty(0.2), **exact),
    }


def differences(folder):
    """(model, estimator, largest difference)."""
    for model in "ab":
        table = np.loadtxt(folder / f"{model}_samples.csv", delimiter=",")
        count, S = table[:, 0], table[:, 1:]
        p = S.shape[1]
        for name, est in estimators(p, count.sum()).items():
            reference = np.loadtxt(folder / f"{model}_{name}_learned.csv", delimiter=",")
            est.fit(S, sample_weight=count)
            theta = np.zeros((p, p))
            for key, value in zip(est.model_.terms.keys, est.model_.tau, strict=True):
                theta[key[0], key[-1]] = theta[key[-1], key[0]] = -value
            yield model, name, float(np.abs(theta - reference).max())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Give the folder of the reference answers.")
    warnings.simplefilter("ignore", IsodusWarning)
    rows = list(differences(Path(sys.argv[1])))
    for model, name, difference in rows:
        print(f"{model} {name:8s} {difference:.2e}")
    print(f"largest {max(d for *_, d in rows):.2e}, goal {GOAL:.0e}")
