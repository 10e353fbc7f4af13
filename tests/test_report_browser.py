"""Reports in a real browser: what a reader clicks, types, prints, and that names of columns do nothing there."""

import csv
import io
import shutil
from dataclasses import replace

import numpy as np
import pytest

from isodus import PolynomialModel, PseudoLikelihood, write_report
from isodus.datasets import double_wells

drivers = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")

HARM = '<img src=x onerror="window.harmed=1"></script><script>window.harmed=1</script>\'"😀'


@pytest.fixture(scope="module")
def browser():
    with drivers.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM)
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Reports: "wells", learned and with samples; "many", 45 variables and 555 terms, some of three and four."""
    where = tmp_path_factory.mktemp("reports")
    names = (HARM, "=cmd", "b,c", "wind", "rain")
    X = np.asarray(double_wells(5).sample(400, rng=0))
    est = PseudoLikelihood(4).fit(X)
    notes = ["has its mass far from the data"]  # or so it says: it need not be drawn from then
    write_report(replace(est.model_, names=names, settings={"notes": notes}), where / "wells.html", X)
    rng = np.random.default_rng(0)
    p = 45
    theta = {(i,) * 4: 1.0 for i in range(p)} | {(i, i): 1.0 for i in range(p)}
    pairs = [(i, j) for i in range(p) for j in range(i)]
    theta |= {pairs[k]: rng.normal(scale=0.05) for k in rng.choice(len(pairs), 445, replace=False)}
    theta |= {(i, i + 1, i + 2): 0.1 for i in range(10)} | {(i, i + 1, i + 2, i + 3): -0.1 for i in range(10)}
    write_report(PolynomialModel.from_dict(theta), where / "many.html")
    return where


@pytest.fixture
def opened(browser, folder):
    """Opens a report; nothing may be fetched, said on the console, or harmed."""
    seen, contexts = [], []

    def open_report(name, **options):
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on(
            "request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or seen.append(request.url)
        )
        page.goto((folder / f"{name}.html").as_uri())
        return page

    yield open_report
    for context in contexts:
        assert context.pages[0].evaluate("window.harmed") is None
        context.close()
    assert seen == []


def visible_sets(page):
    return page.locator("#canvas g.set").evaluate_all("all => all.filter(g => g.style.display !== 'none').length")


def column(page, number):
    return page.locator(f"#table tbody tr:not([hidden]) > :nth-child({number})").all_inner_texts()


def values(texts):
    return [float(text.replace("−", "-")) for text in texts]


def test_threshold_and_only_sure_ones(opened):
    page = opened("wells")
    assert visible_sets(page) == 10
    page.locator("#threshold").fill("60")
    few = visible_sets(page)
    assert 0 < few < 10
    assert page.locator("#shown").inner_text().endswith(f"{few} of 10 sets")
    page.locator("#threshold").focus()
    page.keyboard.press("Home")
    assert visible_sets(page) == 10
    page.locator("#only-sure").check()
    sets = page.evaluate("report.graph.sets.filter(set => set.q < 0.05).length")
    assert visible_sets(page) == sets < 10


def test_a_variable_by_click_by_list_and_by_keyboard(opened):
    page = opened("wells")
    page.locator("g.node", has_text="wind").click()
    assert page.locator("g.node.chosen").get_attribute("aria-pressed") == "true"
    assert page.locator("#about h3").inner_text() == "wind"
    assert "4 neighbours in 4 sets" in page.locator("#about small").first.inner_text()
    assert page.locator("#shown").inner_text().endswith("10 of 10 sets; 4 neighbours")
    assert page.locator("g.set.away").count() == 6
    page.locator("#about summary").first.click()
    page.locator("#about details[open] tr").nth(5).wait_for()
    page.get_by_role("button", name="Its terms in the table").click()
    assert page.locator("#count").inner_text() == "28 of 80 terms, those of wind"
    page.keyboard.press("Escape")
    assert page.locator("g.set.away").count() == 0
    page.locator("#variable").select_option(label="rain")
    assert page.locator("#about h3").inner_text() == "rain"
    page.locator("#variable").select_option("")
    page.locator("g.node[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    chosen = page.locator("g.node.chosen")
    assert chosen.count() == 1
    assert chosen.evaluate("node => node === document.activeElement")


def test_pointing_at_a_line_shows_its_terms(opened):
    page = opened("wells")
    point = page.evaluate(
        """() => {
            const path = document.querySelector('[data-set="0"] .hit');
            const at = path.getPointAtLength(path.getTotalLength() / 2);
            const shown = at.matrixTransform(path.getScreenCTM());
            return [shown.x, shown.y];
        }"""
    )
    page.evaluate("y => scrollTo(0, y)", point[1] - 300)
    page.mouse.move(point[0], 300)
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert "strength" in tip.inner_text()
    assert len(tip.inner_text().splitlines()) == 2 + 6
    page.mouse.move(5, 5)
    assert tip.is_hidden()


def test_zoom(opened):
    page = opened("many")
    box = lambda: [float(part) for part in page.locator("#canvas svg").get_attribute("viewBox").split()]
    whole = box()
    page.get_by_role("button", name="Zoom in").click()
    assert box()[2] == pytest.approx(whole[2] / 1.4)
    page.locator("g.node[tabindex='0']").focus()
    page.keyboard.press("+")
    assert box()[2] == pytest.approx(whole[2] / 1.4 / 1.3)
    page.get_by_role("button", name="Reset").click()
    assert box() == whole


def test_sort_filter_and_download(opened):
    page = opened("wells")
    assert page.locator("#count").inner_text() == "80 of 80 terms"
    theta = page.locator("th button[data-column='theta']")
    theta.click()
    assert values(column(page, 2)) == sorted(values(column(page, 2)))
    theta.click()
    assert values(column(page, 2)) == sorted(values(column(page, 2)), reverse=True)
    assert page.locator("th[aria-sort='descending']").count() == 1
    page.locator("#filter").fill("WIND*")
    assert len(column(page, 1)) == 3
    assert all("wind" in text for text in column(page, 1))
    page.locator("#filter").fill("")
    page.locator("#order").select_option("1")
    assert set(column(page, 9)) == {"1"}
    page.locator("#order").select_option("")
    page.locator("#sure-terms").check()
    assert all(text and (text[0] == "<" or values([text])[0] <= 0.05) for text in column(page, 7))
    page.locator("#sure-terms").uncheck()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    assert waiting.value.suggested_filename == "terms.csv"
    text = waiting.value.path().read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == 80
    assert [float(row["theta"]) for row in rows] == sorted((float(row["theta"]) for row in rows), reverse=True)
    names = {row["term"] for row in rows}
    assert f"{HARM}^2" in names
    assert "b,c*wind" in names
    assert "'=cmd^2" in names  # which a spreadsheet takes for text


def test_names_that_would_be_markup(opened):
    page = opened("wells")
    assert page.locator("img[src='x']").count() == 0
    assert page.locator("script").count() == 2
    page.locator("#variable").select_option("0")
    assert page.locator("#about h3").inner_text() == HARM[:40] + "…" + HARM[-39:] if len(HARM) > 80 else HARM


def test_it_can_be_read_without_sight_or_mouse(opened):
    page = opened("many")
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1").count() == 1
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, select, input, [role=region], svg')].filter(
            e => !(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.textContent.trim()).length"""
    )
    assert unnamed == 0
    assert page.locator("img:not([alt])").count() == 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('class')"))
    assert {"variable", "threshold", "zoom-in", "node", "filter", "order", "download"} <= reached


@pytest.mark.parametrize("name", ["wells", "many"])
def test_on_a_phone_nothing_sticks_out(opened, name):
    page = opened(name, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    drawing = page.locator("#canvas svg").bounding_box()
    assert drawing["width"] > 330
    inside = page.evaluate(
        """() => { const frame = document.querySelector('#canvas svg').getBoundingClientRect();
            return [...document.querySelectorAll('g.node text')].every(t => { const b = t.getBoundingClientRect();
                return b.left > frame.left - 2 && b.right < frame.right + 2 && b.bottom < frame.bottom + 2; }); }"""
    )
    assert inside
    page.locator("g.node").first.tap()
    assert page.locator("g.node.chosen").count() == 1


def test_print(opened):
    page = opened("many", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator("#filter").is_hidden()
    assert page.locator("#table tbody tr").last.is_visible()
    assert page.locator(".scroll.tall").evaluate("box => box.scrollHeight <= box.clientHeight + 1")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("th[data-label] button").first.is_hidden()  # or the heading would be on one page only
    made = page.pdf(format="A4")
    assert made.startswith(b"%PDF")
    assert 8 < made.count(b"/Type /Page\n") < 30


def test_no_word_is_broken_in_a_table(browser, tmp_path):
    names = ("od280/od315_of_diluted_wines", "alcalinity_of_ash", "flavanoids", "proanthocyanins", "color_intensity")
    X = np.asarray(double_wells(5).sample(400, rng=0))
    write_report(replace(PseudoLikelihood(2).fit(X).model_, names=names), tmp_path / "r.html", X)
    for width in (1280, 390):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((tmp_path / "r.html").as_uri())
        broken = page.evaluate(
            """() => { const found = [];
                const walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
                for (let node = walk.nextNode(); node; node = walk.nextNode()) {
                    if (!node.parentElement.closest('table, figcaption')) continue;
                    if (!node.parentElement.getClientRects().length) continue;
                    for (const word of node.data.matchAll(/\\w+/g)) {
                        const range = document.createRange();
                        range.setStart(node, word.index);
                        range.setEnd(node, word.index + word[0].length);
                        const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
                        if (tops.size > 1) found.push(word[0]);
                    }
                }
                return found; }"""
        )
        assert broken == []
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 680, "height": 900})  # A4 within its margins
        assert page.evaluate("document.documentElement.scrollWidth") <= 680
        page.close()
