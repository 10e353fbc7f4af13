"""The tasks of peers.py that ask for a density: parameters of the paper's models, and the fit to held-out data."""

import warnings
from functools import partial

import accuracy
import numpy as np
import real_data
from peers_structure import by_ebic, cross_validated, ready_for_ebic
from peers_table import ABSENT, Data, Task, installed, measure
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from isodus import ISODUS, MonomialBasis

COMPONENTS = (1, 2, 3, 5, 8, 12, 20)

PARAMETERS = Task(
    "Parameters of the paper's models",
    "mean absolute error",
    False,
    "isodus, ISODUS",
    "n = 30,000. Maximum likelihood has a closed form, or sums over a grid. NumPyro gives the posterior mean with a "
    "flat prior and the same normaliser (300 draws of warm-up and 500 of NUTS; seconds with compilation). Both start "
    "from the truth. Ipopt solves the paper's problems (ν = δ = 2), and the answers of the nodes are averaged.",
    4,
)
HELD_OUT = Task(
    "Held-out fit on real data",
    "−log P(x_i given the rest)",
    False,
    "isodus, ISODUS",
    "Random halves, as in `real_data.py`; lower is better. The graphical lassos choose their λ by cross-validation "
    "(scikit-learn) and by extended BIC (GGLasso, γ = 0.1). The mixture has full covariances, and chooses the number "
    f"of its components from {', '.join(map(str, COMPONENTS))} by BIC. With l1 a penalty of isodus leaves terms out; "
    "it is for structure, and costs prediction where variables are nearly functions of others, as in diabetes.",
)


# parameters of the paper's models


def parameters_data(name, k):
    n, truth = 30_000, accuracy.MODELS[name][0]()
    return Data(np.array(truth.sample(n, rng=np.random.default_rng([k, n]))), truth.to_dict())


def by_ipopt(basis, data):
    from paper_2d import ipopt, mean_of_nodes

    theta = mean_of_nodes(basis, [ipopt(data.X, i, basis) for i in range(basis.n_variables)])
    return dict(zip(basis.terms, theta, strict=True))


def by_numpyro(terms, data):
    """The mean of the posterior with a flat prior, by NUTS from the truth."""
    import jax
    import jax.numpy as jnp
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    X, n = data.X, len(data.X)
    if all(len(term) == 2 for term in terms):
        i, j = np.array(terms).T
        mean = np.mean(X[:, i] * X[:, j], axis=0)

        def log_z(theta):
            half = jnp.zeros((X.shape[1],) * 2).at[i, j].add(theta)
            return -jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(half + half.T))))

    else:
        F, mean = accuracy.on_a_grid(X, terms)
        log_z = lambda theta: jax.scipy.special.logsumexp(-theta @ F)

    def potential(theta):
        value = n * (theta @ mean + log_z(theta))
        return jnp.where(jnp.isnan(value), jnp.inf, value)

    chain = MCMC(NUTS(potential_fn=potential, dense_mass=True), num_warmup=300, num_samples=500, progress_bar=False)
    chain.run(jax.random.key(0), init_params=jnp.array([data.truth.get(term, 0.0) for term in terms]))
    return dict(zip(terms, np.array(chain.get_samples()).mean(axis=0), strict=True))


def absolute_error(data, values):
    return float(np.mean([abs(value - data.truth.get(term, 0.0)) for term, value in values.items()]))


def parameters(quick):
    names = {"pair (1,2)": 2} if quick else {"1D": 10, "pair (1,2)": 10, "4D, 65 terms": 5, "Gaussian, p = 10": 10}
    for name, sets in names.items():
        options = accuracy.MODELS[name][1]
        p = accuracy.MODELS[name][0]().basis.n_variables
        basis = MonomialBasis(p, **({"degree": 4, "max_order": 2} | options))
        terms = list(basis.terms)
        fits = {"ISODUS": "ISODUS", "pseudo-likelihood": "pseudo-likelihood", "score matching": "score matching"}
        fits |= {"ISODUS, paper's settings": "paper"}
        todo = {
            f"isodus, {title}": lambda d, key=key, options=options: (
                accuracy.ESTIMATORS[key](options).fit(d.X).model_.to_dict()
            )
            for title, key in fits.items()
        }
        large = "no: a grid of four variables is too large" if name.startswith("4D") else ""
        todo["maximum likelihood, NumPy"] = large or (
            lambda d, terms=terms: accuracy.maximum_likelihood(d.X, terms, d.truth)
        )
        ready = installed("numpyro") and installed("jax")
        todo["posterior mean, NumPyro's NUTS"] = large or (partial(by_numpyro, terms) if ready else ABSENT)
        todo["paper's problems, Ipopt through CasADi"] = partial(by_ipopt, basis) if installed("casadi") else ABSENT
        yield from measure(PARAMETERS, name, todo, partial(parameters_data, name), absolute_error, sets, {})


# held-out halves of real data


def held_out_data(X, k):
    train, test, unit = real_data.halves(X, k)
    return Data(train, (test, unit))


def conditional(weights, means, precisions, X):
    """Mean of −log P(x_i | rest) of a mixture of Gaussians; weights (k,), means (k, p), precisions (k, p, p)."""
    joint, rest = [], []
    for w, m, A in zip(weights, means, precisions, strict=True):
        d = X - m
        slope, diagonal = d @ A, np.diagonal(A)
        one = 0.5 * np.log(diagonal / (2 * np.pi)) - 0.5 * slope**2 / diagonal  # log N(x_i | rest)
        size = 0.5 * np.linalg.slogdet(A)[1] - 0.5 * len(m) * np.log(2 * np.pi)
        joint.append(np.log(w) + size - 0.5 * np.sum(slope * d, axis=1))
        rest.append(joint[-1][:, None] - one)
    return float(np.mean(logsumexp(rest, axis=0) - logsumexp(joint, axis=0)[:, None]))


def in_units(fit, data):
    """A fit to standardised samples as a score of others in their own units; fit: Z → weights, means, precisions."""
    m, s = data.X.mean(axis=0), data.X.std(axis=0)
    found = fit((data.X - m) / s)
    return lambda X: conditional(*found, (X - m) / s) + np.mean(np.log(s))


def one_gaussian(fit, Z):
    return np.ones(1), np.zeros((1, Z.shape[1])), fit(Z)[None]


def mixture(Z):
    fits = [GaussianMixture(k, random_state=0).fit(Z) for k in COMPONENTS if k * Z.shape[1] < len(Z)]
    best = min(fits, key=lambda fit: fit.bic(Z))
    return best.weights_, best.means_, best.precisions_


def score_of(make, data):
    estimator = make(None).fit(data.X)
    return lambda X: -estimator.score(X)


def held_out(quick):
    fits = {key: make for key, make in real_data.ESTIMATORS.items() if key != "paper's settings"}
    fits |= {f'ISODUS, l1="{how}"': lambda jobs, how=how: ISODUS(l1=how, n_jobs=jobs) for how in ("auto", "cv")}
    todo = {f"isodus, {key}": partial(score_of, make) for key, make in fits.items()}
    todo["graphical lasso, scikit-learn"] = partial(in_units, partial(one_gaussian, cross_validated))
    ebic = partial(in_units, partial(one_gaussian, partial(by_ebic, 0.1)))
    todo["graphical lasso, GGLasso"] = ebic if ready_for_ebic() else ABSENT
    todo["mixture of Gaussians, scikit-learn"] = partial(in_units, mixture)

    def judge(data, score):
        test, unit = data.truth
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of samples without a density
            value = score(test) - unit
        return value if np.isfinite(value) else np.inf

    for name, load in real_data.DATA.items():
        if not quick or name in ("wine", "diabetes"):
            X, sets = load(), 2 if quick else 5
            yield from measure(HELD_OUT, name, todo, partial(held_out_data, X), judge, sets, {})
