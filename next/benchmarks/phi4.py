"""φ⁴ fields beside the present library, on the same configurations: estimates, standard errors and times.

E = Σ_i (m²/2 φ_i² + λ/4! φ_i⁴) + ½ Σ_<ij> (φ_i − φ_j)² on periodic L × L lattices, m² = −1, λ = 6; three parameters,
those of φ², φ⁴ and of neighbours. "moved" is the largest difference of an estimate between the two libraries, in
standard errors; "errors" the largest ratio of standard errors to 1, where the present library divides by n − 1. "z" is
the distance from the truth in standard errors. Seconds are those of one core, the least of five fits.

python benchmarks/phi4.py [--sizes 6 32]
"""

import argparse
import time
import warnings

import numpy as np
from common import machine, present, write_table

from isodus import ISODUS, PseudoLikelihood, ScoreMatching, lattice
from isodus.datasets import phi4, phi4_theta

PRESENT = """
import json, time, warnings, numpy as np
from isodus import ISODUS, PseudoLikelihood, ScoreMatching, lattice_basis
warnings.simplefilter("ignore")
X, out = np.load({path!r}), {{}}
for cls in (ISODUS, PseudoLikelihood, ScoreMatching):
    seconds = []
    for _ in range({times}):
        started = time.process_time()
        est = cls(basis=lattice_basis(({L}, {L})), n_jobs=1).fit(X)
        seconds.append(time.process_time() - started)
    at = [list(est.shared_.index).index(name) for name in ("mass", "quartic", "neighbours")]
    theta, error = np.asarray(est.shared_.theta)[at], np.sqrt(np.diag(est.shared_covariance_))[at]
    out[cls.__name__] = [theta.tolist(), error.tolist(), min(seconds)]
print(json.dumps(out))
"""
KEYS = [(0, 0), (0,) * 4, (0, 1)]
ROWS = {6: 400, 32: 100}
TIMES = 5


def fitted(cls, X, L):
    """Estimates, standard errors, seconds and the fit."""
    seconds = []
    for _ in range(TIMES):
        started = time.process_time()
        est = cls(basis=lattice((L, L)), n_jobs=1).fit(X)
        seconds.append(time.process_time() - started)
    view = est.model_.polynomial()
    at = [view.keys.index(key) for key in KEYS]
    return view.coefficients[at], view.stderr[at], min(seconds), est


def main():
    """One row per size and estimator."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[6, 32])
    warnings.simplefilter("ignore")
    rows = []
    for L in parser.parse_args().sizes:
        X, truth = phi4(ROWS.get(L, 200), (L, L), seed=1), phi4_theta((L, L))
        path = "/tmp/isodus_phi4.npy"
        np.save(path, X)
        old = present(PRESENT.format(path=path, times=TIMES, L=L)) or {}
        for cls in (ISODUS, PseudoLikelihood, ScoreMatching):
            theta, error, seconds, est = fitted(cls, X, L)
            z = np.abs(theta - [truth[key] for key in KEYS]) / error
            shown = ("", "", "", "")
            if old:
                other, errors, before = (np.array(part) for part in old[cls.__name__])
                moved, ratio = np.abs((theta - other) / error).max(), error / errors
                shown = (f"{moved:.4f}", f"{np.abs(ratio - 1).max():.4f}", f"{before:.2f}", f"{seconds / before:.2f}")
            what = (f"{L} × {L}", len(X), cls.__name__, est.status_, f"{z.max():.1f}")
            rows.append((*what, *shown[:2], f"{seconds:.2f}", *shown[2:]))
    header = ("lattice", "n", "estimator", "status", "z", "moved", "errors", "s", "present library, s", "ratio")
    write_table("phi4", header, rows, f"{__doc__.strip()}\n\n{machine()}.")


if __name__ == "__main__":
    main()
