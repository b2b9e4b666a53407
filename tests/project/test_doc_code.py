"""The Python blocks of the pages run, and print what the pages say."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import ROOT
from tests.support.doc_page import blocks

# Blocks that are pieces of files, which test_docs.py holds against the files, or of tables.
PIECES = {"docs/add_an_op.md", "compat/README.md"}
PAGES = [page for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
         if page.relative_to(ROOT).as_posix() not in PIECES and blocks(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run(page, tmp_path):
    # A process each: pages set up devices.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MAXJAX_COMPILE": "never"}
    result = subprocess.run([sys.executable, "-m", "tests.support.doc_page", str(page)],
                            cwd=tmp_path, env=environment, text=True, capture_output=True,
                            timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_wrong_page_fails(tmp_path):
    from tests.support.doc_page import run
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n```python\n>>> x + 1\n3\n>>> x\n1\n```\n")
    assert run(page) == 1
