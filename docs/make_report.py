"""Makes docs/images/report.png: how the report of eleven proteins begins, as chromium shows it.

python docs/make_report.py
"""

import shutil
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from isodus import ISODUS, write_report
from isodus.datasets import load_sachs


def main():
    """Fit, write, take the picture."""
    X = load_sachs(condition=True)
    X = X[X["condition"] == 1].drop(columns="condition")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        est = ISODUS(degree=4).fit(X)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "report.html"
        write_report(est, path, X, title="Eleven proteins", said=[str(one.message) for one in caught])
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1120, "height": 1000}, device_scale_factor=0.85)
        page.goto(path.as_uri())
        page.locator("#only-sure").check()
        page.locator("#about summary").first.click()
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        bottom = page.locator("#canvas").bounding_box()
        area = {"x": 0, "y": 0, "width": 1120, "height": bottom["y"] + bottom["height"] + 15}
        page.screenshot(path=Path(__file__).parent / "images" / "report.png", full_page=True, clip=area)
        browser.close()


if __name__ == "__main__":
    main()
