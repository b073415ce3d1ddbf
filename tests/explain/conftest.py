"""A real browser for the tests of pages."""

import os
import shutil

import pytest


def require(found, reason):
    """Skip the test with a reason, or fail it where a browser is required."""
    if not found:
        (pytest.fail if os.environ.get("TARTREE_REQUIRE_BROWSER") else pytest.skip)(reason)


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        require(False, "the package playwright is not installed: pip install 'tartree[dev]'")
    path = os.environ.get("TARTREE_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")
    require(path, "no Chromium is installed (Debian: apt-get install chromium), or set TARTREE_BROWSER to its path")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """A function that opens a file; the test fails if the page has an error, a dialog, or asks for anything else."""
    contexts, problems = [], []

    def go(path, width=1280, height=900, without_resizing=False, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        if without_resizing:  # as on paper, where no script hears of a new width
            page.add_init_script("window.ResizeObserver = class { observe() {} };")
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        asked = []
        page.goto(path.as_uri())
        page.wait_for_selector("[role=treeitem]")
        assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
        return page

    yield go
    for context in contexts:
        context.close()
    assert not problems
