"""The page in a real browser: a digit that is drawn is classified, and what runs is said.

Needs Gradio, Playwright and Chromium, which the other tests do without.
"""

from __future__ import annotations

import math
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("gradio")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SCRIPT = Path(__file__).with_name("draw_digit.py")
pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: Chromium")]


def test_the_example_is_short():
    assert SCRIPT.read_text().count("\n") < 100


@pytest.fixture
def address():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, str(SCRIPT), "1500"],
        env={**os.environ, "GRADIO_ANALYTICS_ENABLED": "False", "GRADIO_SERVER_PORT": str(port),
             "MAXJAX_DETACHED_BUILDS": "0"})
    try:
        for _ in range(120):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.mark.parametrize("width", [1100, 400])
def test_a_drawn_digit_is_classified(address, width):
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(address, wait_until="domcontentloaded")
        page.wait_for_selector("canvas", timeout=60_000)
        page.wait_for_function(
            "[...document.querySelectorAll('textarea')]"
            ".some(text => text.value.startsWith('1500 steps'))",
            timeout=90_000)
        page.get_by_label("Brush").first.click()
        box = page.locator("canvas").first.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        radius = 0.3 * min(box["width"], box["height"])
        page.mouse.move(x, y - radius)
        page.mouse.down()
        for step in range(1, 41):
            angle = 2 * math.pi * step / 40
            page.mouse.move(x + 0.62 * radius * math.sin(angle), y - radius * math.cos(angle))
        page.mouse.up()
        page.wait_for_function("/It looks like\\s+0\\s/.test(document.body.innerText)",
                               timeout=30_000)
        said = page.evaluate("[...document.querySelectorAll('textarea')].map(t => t.value).join()")
        assert "train: " in said and "classify: " in said
        # Nothing is wider than the window.
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
        browser.close()
