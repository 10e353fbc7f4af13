"""Samples drawn with the library before this one, and what its paper's estimator says of them: makes oracle.npz.

    PYTHONPATH=src .venv/bin/python next/tests/data/oracle/make.py    # from the root, with the old library

Samples are rounded to single precision. Terms have degree 2 to 4 and a stated order at most; ν = δ = 2 in units of x.
"""

from pathlib import Path

import numpy as np

from isodus import ISODUS, datasets

CASES = {
    "one": (datasets.paper_1d, 3000, 1),
    "pair": (datasets.paper_pair, 6000, 2),
    "four": (datasets.paper_4d, 8000, 2),
}


def main():
    """Write the file."""
    found = {}
    for name, (model, n, order) in CASES.items():
        X = np.asarray(model().sample(n, rng=1)).reshape(n, -1).astype(np.float32)
        found[f"{name} X"] = X
        for consensus in ("geometric", "mean"):
            est = ISODUS(
                4, min_degree=2, max_order=order, nu=2.0, delta=2.0, refine=0, consensus=consensus, center=False,
                scale=False, tol=1e-15,
            ).fit(X.astype(float))  # fmt: skip
            theta = est.model_.to_dict()
            keys = sorted(theta, key=lambda key: (len(key), key))
            found[f"{name} keys"] = np.array([[key.count(i) for i in range(X.shape[1])] for key in keys])
            found[f"{name} {consensus}"] = np.array([theta[key] for key in keys])
            print(name, consensus, est.status_, est.notes_)
    np.savez_compressed(Path(__file__).with_name("oracle.npz"), **found)


if __name__ == "__main__":
    main()
