"""What does an accelerator gain: each time beside its floor, and beside the same call on all cores of its machine.

The floor of a step is the floating-point operations of its matrix products over the rate of such products, float64,
measured in the same run. Everything is computed in double precision, and data start as NumPy arrays on the host; the
first fit of a kind, which loads libraries and kernels, is not timed.

Gaussian: a random 3-regular graph, κ = 0.25, p = 10,000, n = 5,000, `ISODUS(2, l1=λ, device="cuda")`, λ = 2.2
√(log p / n). One pass is the slopes of all nodes by all pairs at the solution; its floor counts both products with X,
4 p² n operations. Four-body: 100 variables in 25 independent blocks of four, each with a pair, a product of three and
one of all four, drawn exactly, n = 100,000; all 4.6 million monomials of degree up to 4 are candidates,
`ISODUS(4, max_order=4, l1=λ, device="cuda")`, λ = 6/√n. One pass is the slopes of the screening objective of all nodes
by all terms, the integrals of its pilot being known; its floor counts both products with all cofactors. F1 is that of
groups of variables. Paper: two variables, degree 4, n = 10⁷, default ISODUS; the floor of its products is that of one
Hessian, which tells little: such small ones are bound by memory.

On all cores the same calls run with n_jobs, at sizes that take less than about a minute, and on the device at the same
sizes.

    python benchmarks/gpu.py [--quick] [--only gaussian fourbody paper] [--device cuda] [--jobs 16] [--profile]
"""

import argparse
import cProfile
import os
import pstats
import time
import warnings

import numpy as np
import torch

from isodus import ISODUS, PolynomialModel
from isodus.arrays import one_blas_thread
from isodus.basis import MonomialBasis
from isodus.criteria import likelihood_nodes
from isodus.datasets import paper_pair, regular_gaussian
from isodus.estimators.candidates import Form, over, within
from isodus.fitting import sources
from isodus.path import at
from isodus.preparation import prepare
from isodus.shortlist import PairSlopes, Shortlist, TermSlopes

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
BLOCK = {(0, 1): 0.2, (1, 2, 3): 0.1, (0, 1, 2, 3): 0.1}
WORDS = {"gaussian": "Gaussian", "fourbody": "four-body", "paper": "paper's pair"}


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(function, device, repeats=1):
    """The median of the times, and what came out."""
    durations = []
    for _ in range(repeats):
        wait(device)
        started = time.perf_counter()
        result = function()
        wait(device)
        durations.append(time.perf_counter() - started)
    return float(np.median(durations)), result


def matrix_rate(device, size):
    """Floating-point operations a second of products of square matrices, float64."""
    A = torch.randn(size, size, dtype=torch.float64, device=device)
    best = min(seconds(lambda: A @ A, device)[0] for _ in range(8))
    return 2 * size**3 / best


def show(what, taken, floor=None, note=""):
    beside = "" if floor is None else f"{floor:9.3f}  {taken / floor:7.1f}"
    print(f"{what:<58} {taken:9.3f}  {beside:<18}  {note}", flush=True)


def fit(X, options, **where):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ISODUS(**options, **where).fit(X)


def profiled(function, wanted):
    if not wanted:
        return
    profile = cProfile.Profile()
    profile.runcall(function)
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


def gaussian(p, n, device):
    """Samples, options of the fit, and the edges."""
    precision = torch.asarray(regular_gaussian(p, 3, 0.25, rng=p).precision(), device=device)
    torch.manual_seed(1)
    z = torch.randn(p, n, dtype=torch.float64, device=device)
    X = torch.linalg.solve_triangular(torch.linalg.cholesky(precision).T, z, upper=True).T
    edges = {tuple(e) for e in torch.nonzero(torch.triu(precision, 1)).tolist()}
    return X.cpu().numpy().copy(), dict(degree=2, l1=2.2 * np.sqrt(np.log(p) / n)), edges


def fourbody(p, n, device):
    own = {(i,) * d: c for i in range(4) for d, c in ((2, 1 / 4), (4, 1 / 24))}
    Z = PolynomialModel.from_dict(own | BLOCK).sample(p // 4 * n, rng=1, method="exact", n_jobs=CORES)
    X = np.array(Z).reshape(p // 4, n, 4).transpose(1, 0, 2).reshape(n, p)
    groups = {tuple(4 * b + i for i in term) for b in range(p // 4) for term in BLOCK}
    return X, dict(degree=4, max_order=4, l1=6 / np.sqrt(n)), groups


def paper(p, n, device):
    return np.array(paper_pair(1).sample(n, rng=0, n_jobs=CORES)), dict(degree=4), None


CASES = {"gaussian": gaussian, "fourbody": fourbody, "paper": paper}


def warm_up(kind, device):
    p, n = {"gaussian": (300, 1000), "fourbody": (8, 2000), "paper": (2, 10_000)}[kind]
    X, how, _ = CASES[kind](p, n, device)
    fit(X, how, device=device)


def found_groups(model):
    return {tuple(sorted(set(term))) for term, v in model.to_dict("standardized").items() if v and len(set(term)) > 1}


def recovery(model, truth):
    found = found_groups(model)
    right = len(found & truth)
    return f"{right} of {len(truth)} found, {len(found) - right} others, F1 {2 * right / (len(found) + len(truth)):.3f}"


def one_pass(X, options, device):
    """Seconds of the slopes of all nodes by all terms, at the solution over the terms that are listed."""
    estimator = ISODUS(**options, device=device)
    setting = prepare(estimator, X, None, penalised=True)
    with sources(setting, None) as samples, one_blas_thread():
        whole = setting.basis
        slopes = PairSlopes(samples, False) if whole.degree == 2 else TermSlopes(whole, False)
        short, form = Shortlist(whole, slopes, False), Form(likelihood_nodes, likelihood=True)
        start = over(estimator, setting, short.basis, samples, form, 1e-8, 100)[1].start(samples)
        short.begin(start, estimator.l1, 0.5)
        start = within(short, over(estimator, setting, short.basis, samples, form, 1e-8, 100)[1]).start(samples)
        found = at(start, estimator.l1)

        def again():
            if isinstance(slopes, TermSlopes):
                slopes._last = None
            return slopes.above(start, found.theta, found.l1)

        again()
        return seconds(again, device, 5)[0]


def floor_of_pass(kind, p, n, rate):
    if kind == "gaussian":
        return 4 * p**2 * n / rate
    m = MonomialBasis(p, 3, max_order=3)
    return 4 * p * n * (len(m) + 1) / rate


def case(kind, p, n, device, rate, options):
    X, how, truth = CASES[kind](p, n, device)
    name = f"{WORDS[kind]}, p = {p:,}, n = {n:,}"
    warm_up(kind, device)
    if kind == "paper":
        floor = 2 * 2 * 13 * 13 * n / rate
        show(f"{name}: whole fit", *seconds(lambda: fit(X, how, device=device), device, 3)[:1], floor, "wanted: < 2 s")
    else:
        floor, wanted = (
            floor_of_pass(kind, p, n, rate),
            {"gaussian": "1.3 floors; fit < 5 s", "fourbody": "0.2 s; fit < 15 s"},
        )
        show(f"{name}: one pass", one_pass(X, how, device), floor, f"wanted: {wanted[kind]}")
        taken, found = seconds(lambda: fit(X, how, device=device), device)
        show(f"{name}: whole fit", taken, floor, recovery(found.model_, truth))
        print(f"    {found.notes_[0]}; KKT conditions of all terms missed by {found.kkt_.max():.1e}")
        if device == "cuda":
            print(f"    device memory at most {torch.cuda.max_memory_allocated() / 1e9:.1f} GB")
    profiled(lambda: fit(X, how, device=device), options.profile)


def beside_cores(kind, p, n, device, jobs):
    X, how, _ = CASES[kind](p, n, device)
    warm_up(kind, device)
    repeats = 5 if kind == "paper" else 1
    ours = seconds(lambda: fit(X, how, device=device), device, repeats)[0]
    theirs = seconds(lambda: fit(X, how, n_jobs=jobs), "cpu", repeats)[0]
    name = f"{WORDS[kind]}, p = {p:,}, n = {n:,}"
    print(f"{name:<58} device {ours:8.3f} s, {jobs} cores {theirs:8.3f} s, ratio {theirs / ours:6.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=CORES)
    parser.add_argument("--profile", action="store_true", help="where whole fits spend their time")
    parser.add_argument("--no-cores", action="store_true", help="without the comparison with all cores")
    options = parser.parse_args()
    device = options.device
    sizes = {"gaussian": (10_000, 5000), "fourbody": (100, 100_000), "paper": (2, 10**7)}
    smaller = {"gaussian": [(10_000, 5000)], "fourbody": [(40, 20_000)], "paper": [(2, 10**k) for k in (4, 5, 6)]}
    if options.quick:
        sizes = {"gaussian": (300, 1000), "fourbody": (8, 2000), "paper": (2, 10**4)}
        smaller = {kind: [size] for kind, size in sizes.items()}
    rate = matrix_rate(device, 1024 if options.quick else 8192)
    name = torch.cuda.get_device_name() if device == "cuda" else device
    print(f"{name}, torch {torch.__version__}, CUDA {torch.version.cuda}, NumPy {np.__version__}, {CORES} cores")
    print(f"products of matrices, float64: {rate / 1e12:.1f} TFLOP/s\n")
    print(f"{'':<58} {'seconds':>9}  {'floor':>9}  {'ratio':>7}")
    for kind in options.only:
        case(kind, *sizes[kind], device, rate, options)
    if not options.no_cores:
        print(f"\nthe same call on {options.jobs} cores, at sizes that these take less than minutes for")
        for kind in options.only:
            for size in smaller[kind]:
                beside_cores(kind, *size, device, options.jobs)


if __name__ == "__main__":
    main()
