"""The browser that pages are tried in."""

from __future__ import annotations

from pathlib import Path

import chromium
import pytest


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if chromium.PROGRAM is None:
        pytest.skip("chromium is not installed")
    browser = chromium.Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def shown(browser):
    """Opens a page. It has nothing to complain of at the end."""

    def show(page: Path):
        browser.open(page)
        return browser

    yield show
    assert browser.complaints() == []
