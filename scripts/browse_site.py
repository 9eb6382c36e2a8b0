# SPDX-License-Identifier: Apache-2.0
"""Looks at pages of the built site in Chromium, as scripts/site.py runs it: python browse_site.py CHROMIUM FOLDER PAGE...

Each page is opened on a wide and on a narrow screen, light and dark. Faults are what axe-core finds, errors of scripts, and a page that is
wider than its screen. With a page of the search, the search has to lead to the page of kernels. Exit status 1 if there are faults.
"""

import pathlib
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

SCREENS = [({"width": width, "height": 900}, theme) for width in (1280, 420) for theme in ("light", "dark")]
SEARCH, SOUGHT, FOUND = "search.html", "malloc_warp", "api/kernels.html"


def faults_of(page, where):
    errors = []
    page.on("pageerror", lambda error: errors.append(f"a script: {error}"))
    page.goto(where)
    yield from errors
    for fault in Axe().run(page).response["violations"]:
        for node in fault["nodes"]:
            yield f"{fault['id']}: {fault['help']}: {' '.join(node['target'])}"
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        yield "wider than the screen"


def faults_of_search(page, folder):
    """What is sought in the page's own field, as a reader does it."""
    page.goto(f"{folder}/index.html")
    page.locator(".search-button__button:visible").first.click()
    page.locator("input[type=search]:visible").first.fill(SOUGHT)
    page.keyboard.press("Enter")
    try:
        page.wait_for_selector(f"#search-results a[href*='{FOUND}']", timeout=10_000)
    except Exception as fault:
        yield f"the search for {SOUGHT} does not lead to {FOUND}: {fault}"


def main(chromium, folder, *names):
    found = []
    folder = pathlib.Path(folder).resolve().as_uri()
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for screen, theme in SCREENS:
            for name in names:
                page = browser.new_page(viewport=screen, color_scheme=theme)
                some = faults_of_search(page, folder) if name == SEARCH else faults_of(page, f"{folder}/{name}")
                found += [f"{name}, {screen['width']} pixels, {theme}: {fault}" for fault in some]
                page.close()
        browser.close()
    print("\n".join(found) or f"{len(names)} pages on {len(SCREENS)} screens have no faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
