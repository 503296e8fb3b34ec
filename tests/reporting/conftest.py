"""A headless Chromium for the tests of reports, where there is one: Debian's, or the one that Playwright installs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser; tests that ask for it are skipped, with a notice, where none can be started."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: no test in a browser")
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    options = {} if found is None else {"executable_path": found}
    sandbox = [] if hasattr(os, "geteuid") and os.geteuid() else ["--no-sandbox"]
    with playwright.sync_playwright() as running:
        try:
            started = running.chromium.launch(args=sandbox, **options)
        except playwright.Error as error:
            pytest.skip(f"no Chromium was found: no test in a browser ({str(error).splitlines()[0]})")
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file as a page whose ``problems`` collect errors, console messages, dialogs and requests."""
    opened = []

    def open_page(path: Path, *, width: int = 1100, height: int = 900, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        opened.append(context)
        page = context.new_page()
        page.problems = []
        page.on("console", lambda message: page.problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: page.problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: page.problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: _note(page, path, request.url))
        page.goto(path.resolve().as_uri())
        return page

    yield open_page
    for context in opened:
        context.close()


def _note(page: Any, path: Path, url: str) -> None:
    if not url.startswith(("data:", path.resolve().as_uri())):
        page.problems.append(f"request: {url}")
