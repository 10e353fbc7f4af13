"""Plots: what is drawn, in which colours, that names can be read, and what is refused."""

import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from isodus import ISODUS, PolynomialModel, PseudoLikelihood, plotting
from isodus.datasets import double_wells, hypertree_polynomial, load_sachs, regular_gaussian
from isodus.goodness import goodness_of_fit
from isodus.plotting import layout, sets, style
from isodus.plotting.densities import _pair_density

ODD = ["a$b$", "_under", 'quo"te', "back\\slash $", "long " * 12 + "name", "😀", "tab\there"]


@pytest.fixture(scope="module")
def wells():
    X = double_wells(5).sample(1000, rng=0)
    return PseudoLikelihood(degree=4).fit(X).model_, X


@pytest.fixture(scope="module")
def proteins():
    X = load_sachs(condition=True)
    X = X[X["condition"] == 1].drop(columns="condition")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PseudoLikelihood(degree=2).fit(X).model_, X


@pytest.fixture(scope="module")
def sixty():
    model = regular_gaussian(60, rng=0)
    return model, model.sample(200, rng=0)


@pytest.fixture(autouse=True)
def nothing_else_changes():
    """No plot leaves a figure of pyplot's that was not asked for, or a setting."""
    settings, figures = dict(matplotlib.rcParams), plt.get_fignums()
    yield
    assert dict(matplotlib.rcParams) == settings
    assert plt.get_fignums() == figures


def chain(p, names=None, **more):
    theta = {(i, i): 1.0 for i in range(p)} | {(i, i + 1): 0.3 * (-1) ** i for i in range(p - 1)}
    return PolynomialModel.from_dict(theta | more.get("extra", {}), names=names, n_variables=p)


def figure():
    return Figure(layout="constrained")


def by_gid(ax, gid):
    return [one for one in ax.collections if one.get_gid() == gid]


def overlapping(texts):
    """Pairs of texts whose boxes meet; those that are turned as turned boxes, by their corners."""
    shown = [t for t in texts if t.get_text() and t.get_visible()]
    boxes = [corners(t) for t in shown]
    return [
        (shown[i].get_text(), shown[j].get_text())
        for i in range(len(boxes))
        for j in range(i)
        if not any(apart(boxes[i], boxes[j], axis) for box in (boxes[i], boxes[j]) for axis in np.diff(box, axis=0)[:2])
    ]


def corners(text):
    angle = np.radians(text.get_rotation())
    if text.get_rotation_mode() != "anchor":
        (x0, y0), (x1, y1) = text.get_window_extent().get_points()
        return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    where = text.get_transform().transform(text.get_position())
    turned = text.get_rotation()
    text.set_rotation(0)
    (x0, y0), (x1, y1) = text.get_window_extent().get_points() - where
    text.set_rotation(turned)
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return where + np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]) @ R.T


def apart(one, other, axis):
    """Whether a line across this axis parts two boxes, but for half a pixel."""
    axis = axis / np.linalg.norm(axis)
    a, b = one @ axis, other @ axis
    return a.max() < b.min() + 0.5 or b.max() < a.min() + 0.5


def drawn(plot, *args, **options):
    return plot(*args, figure(), **options)


def settled(plot, *args, **options):
    """With the layout as it will be."""
    made = figure()
    axes = plot(*args, made, **options)
    made.draw_without_rendering()
    return axes


# the graph


def test_a_graph_has_a_line_a_pair_and_a_node_a_larger_set():
    model = chain(5, extra={(0, 1, 2): 0.4, (1, 2, 3, 4): -0.2})
    ax = drawn(plotting.graph, model)
    (lines,), (spokes,), marks = by_gid(ax, "pairs"), by_gid(ax, "spokes"), by_gid(ax, "set")
    assert len(lines.get_segments()) == 4
    assert len(spokes.get_segments()) == 3 + 4
    assert len(marks) == 2
    assert {to_rgb(c[:3]) for c in lines.get_colors()} == {to_rgb(style.POSITIVE), to_rgb(style.NEGATIVE)}
    assert {t.get_text() for t in ax.texts} == set(model.names)
    assert ax.get_title() == "5 variables: 4 pairs, 1 three, 1 four"
    words = [t.get_text() for t in ax.get_legend().get_texts()]
    assert {"three variables", "four variables", "product tends to be positive"} <= set(words)


def test_signs_are_those_of_the_association():
    r = 0.6
    model = PolynomialModel.from_dict({(0, 0): 1, (1, 1): 1, (0, 1): -2 * r, (1, 2): 2 * 0.3, (2, 2): 1})
    frame, measure = sets.interacting_sets(model)
    assert measure == sets.PARTIAL
    assert frame["variables"].tolist() == [(0, 1), (1, 2)]
    assert frame["sign"].tolist() == [1, -1]
    assert np.allclose(frame["strength"], [0.6, 0.3])
    X = model.sample(4000, rng=0)
    assert np.corrcoef(X.T)[0, 1] > 0 > np.corrcoef(X.T)[1, 2]
    even = PolynomialModel.from_dict({(0,) * 4: 1, (1,) * 4: 1, (0, 0, 1, 1): 0.5})
    frame, measure = sets.interacting_sets(even)
    assert (frame["sign"].tolist(), measure) == ([0], sets.STRENGTH)
    cubic = PolynomialModel.from_dict({(0,) * 4: 1, (1,) * 4: 1, (0, 1, 1, 1): -0.5})
    assert sets.interacting_sets(cubic)[0]["sign"].tolist() == [1]


def test_what_is_not_sure_is_faint_and_stronger_is_wider(wells):
    model, _ = wells
    ax = drawn(plotting.graph, model)
    (lines,) = by_gid(ax, "pairs")
    tests = model.interactions()
    opaque = lines.get_colors()[:, 3] > 0.5
    assert opaque.sum() == (tests["q_value"] < 0.05).sum() == 4
    widths = np.array(lines.get_linewidths())
    assert widths[opaque].min() > widths[~opaque].max()
    assert "not sure (q ≥ 0.05)" in [t.get_text() for t in ax.get_legend().get_texts()]
    none = drawn(plotting.graph, double_wells(5))  # no covariance: nothing is faint
    assert np.all(by_gid(none, "pairs")[0].get_colors()[:, 3] > 0.5)


@pytest.mark.parametrize("p", [5, 11, 12, 13, 60, 100])
def test_names_of_a_graph_do_not_overlap(p):
    names = [f"variable number {i} of these" if p <= 60 else f"v{i}" for i in range(p)]
    ax = settled(plotting.graph, chain(p, names, extra={(0, p - 1): 0.2}))
    assert len(ax.texts) == p
    assert overlapping([*ax.texts, ax.title]) == []
    width, height = ax.figure.canvas.get_width_height()
    for text in ax.texts:
        (x0, y0), (x1, y1) = text.get_window_extent().get_points()
        assert min(x0, y0) > -2
        assert x1 < width + 2
        assert y1 < height + 2
    key = ax.get_legend().get_window_extent()
    assert all(t.get_window_extent().x1 < key.x0 + 2 for t in ax.texts)


def test_variables_without_interactions_are_listed():
    model = PolynomialModel.from_dict({(i, i): 1.0 for i in range(60)} | {(3, 7): 0.2})
    ax = drawn(plotting.graph, model)
    assert [t.get_text() for t in ax.texts[:2]] == ["x3", "x7"]
    assert "no interactions: x0, x1, x2, x4" in ax.texts[2].get_text()
    assert drawn(plotting.graph, chain(1)).get_title() == "1 variable: no interactions"
    many = PolynomialModel.from_dict({(i, i): 1.0 for i in range(200)})
    assert drawn(plotting.graph, many).texts[0].get_text().endswith("and 140 more")


def test_more_than_fits_is_left_out_and_said():
    p = 25
    theta = {(i, i): 1.0 for i in range(p)} | {(i, j): 0.001 * (i + j) for i in range(p) for j in range(i)}
    ax = plotting.graph(PolynomialModel.from_dict(theta), Figure().add_subplot())
    assert "300 pairs; drawn are 75 of the 300 sets" in " ".join(ax.get_title().split())
    assert len(by_gid(ax, "pairs")[0].get_segments()) == 75
    few = plotting.graph(PolynomialModel.from_dict(theta), Figure().add_subplot(), most=3)
    assert len(by_gid(few, "pairs")[0].get_segments()) == 3
    strong = plotting.graph(PolynomialModel.from_dict(theta), Figure().add_subplot(), threshold=0.02)
    assert len(by_gid(strong, "pairs")[0].get_segments()) == sum(
        0.0005 * (i + j) >= 0.02 for i in range(p) for j in range(i)
    )
    assert "of the" in plotting.graph(chain(200), Figure().add_subplot()).get_title()


def test_layout_is_the_same_every_time_and_puts_neighbours_together():
    edges = [(i, (i + 1) % 12) for i in range(12)]
    shuffled = np.random.default_rng(0).permutation(12)
    moved = [(int(shuffled[i]), int(shuffled[j])) for i, j in edges]
    order = layout.circle_order(12, moved, [1.0] * 12)
    assert order == layout.circle_order(12, moved, [1.0] * 12)
    assert {frozenset(pair) for pair in zip(order, order[1:] + order[:1], strict=True)} == set(map(frozenset, moved))
    at = layout.spread(np.zeros((8, 2)), np.zeros((0, 2)), 0.1)
    gaps = np.linalg.norm(at[:, None] - at, axis=2)[np.triu_indices(8, 1)]
    assert gaps.min() > 0.08


# tables


def test_couplings_are_partial_correlations_where_there_are_such(proteins):
    model, _ = proteins
    ax = drawn(plotting.couplings, model)
    assert ax.get_title() == "partial correlations"
    assert [t.get_text() for t in ax.get_yticklabels()] == list(model.names)
    image = np.asarray(ax.images[-1].get_array())
    precision = model.precision()
    r = -precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1])
    assert np.isclose(image[0, 1], r)
    assert np.isclose(image[1, 0], r)
    assert "pale" in ax.get_xlabel()
    assert len(ax.texts) == 110


@pytest.mark.parametrize("p", [11, 60])
def test_names_of_tables_do_not_overlap(p):
    model = chain(p, [f"the variable number {i}" for i in range(p)])
    ax = settled(plotting.couplings, model)
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert overlapping(labels) == []
    assert overlapping(settled(plotting.forest, model, n=60).get_yticklabels()) == []


def test_couplings_of_higher_sets_are_above_the_diagonal():
    model = chain(6, extra={(0, 2, 4): 0.5, (1, 2, 2): 0.4})
    ax = drawn(plotting.couplings, model)
    above = np.ma.masked_invalid(ax.images[-1].get_array())
    assert [tuple(map(int, cell)) for cell in np.argwhere(~np.ma.getmaskarray(above))] == [(0, 2), (0, 4), (2, 4)]
    assert len(ax.figure.axes) == 3
    some = drawn(plotting.couplings, model, variables=["x1", 2])
    assert [t.get_text() for t in some.get_xticklabels()] == ["x1", "x2"]
    assert "the 120 of 130 variables" in drawn(plotting.couplings, chain(130)).get_title()


def test_a_forest_has_intervals_where_they_are_known(wells):
    model, _ = wells
    ax = drawn(plotting.forest, model, n=7)
    table = model.to_frame("standardized").assign(size=np.abs(model.theta))
    table = table[table["order"] > 1].sort_values("size", ascending=False).head(7)
    spans = [one.get_segments()[0][:, 0] for one in ax.collections]
    assert np.allclose(spans, table[["ci_low", "ci_high"]])
    assert ax.get_yticklabels()[0].get_text() == table["term"].iloc[0].replace("*", "·")
    assert ax.get_title() == f"the 7 largest of {(model.basis.orders > 1).sum()} interactions"
    assert "95 % intervals" in ax.get_xlabel()
    wide = drawn(plotting.forest, model, n=7, simultaneous=True, level=0.9)
    assert "90 % intervals, all at once" in wide.get_xlabel()
    assert np.ptp(wide.collections[0].get_segments()[0][:, 0]) > np.ptp(spans[0])
    plain = drawn(plotting.forest, double_wells(5), units="raw", terms="all")
    assert plain.get_xlabel() == "θ, in the units of the data\nθ < 0: the term tends to be large; θ > 0: to be small"
    assert "x0⁴" in [t.get_text() for t in plain.get_yticklabels()]


# densities, residuals


def test_marginals_are_densities_over_the_data(wells):
    model, X = wells
    panels = drawn(plotting.marginals, model, X)
    assert [ax.get_title() for ax in panels] == list(model.names)
    for ax in panels:
        x, y = ax.lines[0].get_data()
        assert 0.97 < np.trapezoid(y, x) < 1.01
        assert sum(bar.get_height() * bar.get_width() for bar in ax.patches) == pytest.approx(1)
    x, y = panels[0].lines[0].get_data()
    assert y[np.argmin(np.abs(x))] < 0.4 * y.max()  # between the wells


def test_one_variable_and_the_model_alone():
    model = PolynomialModel.from_dict({(0, 0): 0.5}, names=["a"])
    (ax,) = drawn(plotting.marginals, model, None)
    x, y = ax.lines[0].get_data()
    assert np.allclose(y, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))
    with pytest.raises(ValueError, match='a alone is no pair: .* or plot "marginals"'):
        plotting.pairs(model, None, figure())
    for kind in ("graph", "couplings", "forest"):
        assert "no interactions" in drawn(lambda m, f, kind=kind: plotting.plot(kind, m, None, f), model).get_title()


def test_pair_densities_are_those_of_a_gaussian():
    model = regular_gaussian(6, rng=0)
    x = np.linspace(-4, 4, 61)
    draws = model.sample(4000, rng=0)
    density = _pair_density(model, 0, 1, x, x, np.asarray(draws))
    density /= density.sum()
    S = np.linalg.inv(model.precision())[:2, :2]
    moments = [[np.sum(density * np.multiply.outer(x**a, x**b)) for b in range(3)] for a in range(3)]
    assert np.allclose([moments[2][0], moments[0][2], moments[1][1]], [S[0, 0], S[1, 1], S[0, 1]], atol=0.05)


def test_pairs_are_the_strongest_or_those_named(wells):
    model, X = wells
    panels = drawn(plotting.pairs, model, X, most=4)
    named = {frozenset((ax.get_xlabel(), ax.get_ylabel())) for ax in panels}
    assert named == {frozenset((f"x{i}", f"x{i + 1}")) for i in range(4)}
    assert "4 of 10 pairs" in panels[0].figure.get_suptitle()
    assert len(drawn(plotting.pairs, model, X, variables=["x0", "x3", 4])) == 3
    own = drawn(plotting.pairs, model, X, variables=[0, 1], rest=X[:50])
    assert "given rows of the other variables" in own[0].figure.get_suptitle()


def test_residuals_of_models_and_of_what_goodness_found(wells):
    model, X = wells
    assert len(drawn(plotting.residuals, model, X).lines) == 1 + 5
    normal = PseudoLikelihood(degree=2).fit(X).model_
    ax = drawn(plotting.residuals, normal, X)
    assert ax.get_title() == "4 of 5 variables off (q < 0.05)"
    assert len(ax.get_legend().get_texts()) == 4
    fit = goodness_of_fit(normal, X, n_draws=10)
    title = f"{len(fit.misfits)} of 5 variables off (q < 0.025)"  # as many as its verdict names
    assert fit.plot(figure().add_subplot()).get_title() == title
    assert drawn(plotting.residuals, fit, None).get_title() == title


def test_the_model_itself_and_given_the_data_are_drawn_side_by_side(wells):
    model, X = wells
    draws = np.asarray(model.sample(200, rng=0))
    for rest in ("both", {"model": draws, "data": X}):
        panels = model.plot("marginals", X, figure(), variables=[0], rest=rest)
        assert [line.get_linestyle() for line in panels[0].lines] == ["-", "--"]
        panels = model.plot("pairs", X, figure(), variables=[0, 1], rest=rest)
        assert [len(lines.levels) for lines in panels[0].collections if hasattr(lines, "levels")] == [2, 2]
    (panel,) = model.plot("marginals", X, figure(), variables=[0], rest={"data": X})
    assert [line.get_linestyle() for line in panel.lines] == ["--"]


def test_a_penalty_path_marks_what_was_chosen(sixty):
    _, X = sixty
    est = ISODUS(degree=2, l1="auto").fit(X[:, :8])
    top, bottom = drawn(lambda path, f: plotting.penalty_path(path, f), est.path_)
    chosen = est.path_.l1[est.path_.chosen]
    assert [line.get_xdata()[0] for line in (top.lines[-1], bottom.lines[-1])] == [chosen, chosen]
    assert f"at l1 = {chosen:.3g}" in top.get_title()
    axes = figure().subplots(2, 1)
    assert plotting.penalty_path(est, axes)[0] is axes[0]
    with pytest.raises(ValueError, match=r'est.path_ .* ISODUS\(l1="auto"\)'):
        plotting.penalty_path(chain(3), figure())


def test_error_scaling_tells_slopes():
    rng = np.random.default_rng(0)
    rows = [
        {"method": name, "n": n, "error": c / np.sqrt(n) * (1 + 0.02 * rng.standard_normal())}
        for name, c in (("one", 1.0), ("_other $", 2.0))
        for n in (100, 1000, 10_000)
        for _ in range(4)
    ]
    ax = drawn(plotting.error_scaling, pd.DataFrame(rows))
    one, other = [t.get_text() for t in ax.get_legend().get_texts()]
    assert one.startswith("one: −0.5") or one.startswith("one: −0.49")
    assert other.startswith(r"_other \$: −0.")
    for bad, words in (
        (pd.DataFrame({"n": [1]}), "it has no error"),
        (pd.DataFrame({"n": [], "error": []}), "no rows"),
    ):
        with pytest.raises(ValueError, match=words):
            plotting.error_scaling(bad, figure())


# names, axes, errors


def test_odd_names_are_drawn_as_they_are(tmp_path):
    model = chain(7, ODD, extra={(0, 1, 2): 0.2, (0, 3): 0.1})
    X = np.random.default_rng(0).standard_normal((100, 7)) * 3
    assert style.label("a$b$") == r"a\$b\$"
    assert len(style.label(ODD[4])) == 24
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        for kind, found in plotting.KINDS.items():
            made = plotting.draw(kind, model, X if found.takes_data else None)
            texts = [t for ax in made.axes for t in (*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels())]
            assert not any("$" in t.get_text() and matplotlib.cbook.is_math_text(t.get_text()) for t in texts)
        plotting.draw("graph", model, X, tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_bytes()[:5] == b"<?xml"


def test_axes_are_used_and_returned(wells):
    model, X = wells
    other = plt.figure()
    own = Figure(figsize=(9, 9))
    axes = own.subplots(3, 3).ravel()
    assert model.plot(ax=axes[0]) is axes[0]
    assert model.plot("forest", ax=axes[1], n=5) is axes[1]
    assert plotting.residuals(model, X, axes[2]) is axes[2]
    panels = plotting.marginals(model, X, axes[3:8])
    assert all(a is b for a, b in zip(panels, axes[3:8], strict=True))
    assert plotting.couplings(model, axes[8]) is axes[8]
    assert not other.axes
    plt.close(other)
    new = model.plot()
    assert new.figure.number == plt.get_fignums()[-1]
    plt.close(new.figure)
    part = Figure().subfigures(1, 2)[0]
    assert plotting.graph(model, part).figure is part


def test_pictures_are_saved(tmp_path, wells):
    model, X = wells
    for ending in ("png", "svg", "pdf"):
        made = plotting.draw("graph", model, X, tmp_path / f"g.{ending}")
        assert (tmp_path / f"g.{ending}").stat().st_size > 2000
        assert isinstance(made, Figure)
    with pytest.raises(ValueError, match=r"g.docx: pictures end in .png, .svg or .pdf"):
        plotting.draw("graph", model, path=tmp_path / "g.docx")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, X: m.plot("grph"), "there is no plot 'grph'; there are graph, couplings, forest"),
        (lambda m, X: m.plot("residuals"), "'residuals' needs samples: give X"),
        (lambda m, X: m.plot("graph", colour=1), "'graph' has no option 'colour'; it has threshold, level, most, key"),
        (lambda m, X: m.plot(level=2), "level must lie between 0 and 1"),
        (lambda m, X: m.plot(threshold=-1), "threshold must be a number of at least zero"),
        (lambda m, X: m.plot(most=0), "most must be a positive integer"),
        (lambda m, X: m.plot(ax="here"), "ax must be matplotlib axes"),
        (lambda m, X: m.plot("forest", terms="some"), 'terms must be "interactions" or "all"'),
        (lambda m, X: m.plot("couplings", variables=["x9"]), "no variable 'x9'; it has x0, x1"),
        (lambda m, X: m.plot("marginals", X[:, :2]), r"X has shape \(1000, 2\)"),
        (lambda m, X: m.plot("marginals", np.where(X[3, 2] == X, np.nan, X)), "X holds nan in row 3, column x2"),
        (lambda m, X: m.plot("marginals", X, Figure().subplots(1, 2)), "5 matplotlib axes are needed, and 2 were"),
        (lambda m, X: m.plot("pairs", X, rest="none"), 'rest must be "data", "model", "both", an array'),
        (lambda m, X: m.plot("pairs", rest="data"), 'rest="data" takes data'),
        (lambda m, X: m.plot("pairs", X, rest={"draws": X}), "a dict of rows has .*, not 'draws'"),
        *(
            (lambda m, X, kind=kind: plotting.plot(kind, ISODUS(), X), "a PolynomialModel is wanted .*, not ISODUS")
            for kind in plotting.KINDS
        ),
    ],
)
def test_what_is_wrong_is_said(wells, call, words):
    with pytest.raises(ValueError, match=words):
        call(*wells)


def test_sixty_variables_of_every_kind(sixty):
    model, X = sixty
    hyper = hypertree_polynomial(60, rng=1)
    for kind, found in plotting.KINDS.items():
        made = plotting.draw(kind, model, X if found.takes_data else None)
        assert made.axes
    made = plotting.draw("graph", hyper)
    made.draw_without_rendering()
    assert overlapping(made.axes[0].texts) == []
