"""The Python blocks of the pages run, and print what the pages say; commands in others exist."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib

import pytest

from maxjax.__main__ import _USAGE
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


# --- commands -------------------------------------------------------------------------------------

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
SHELL = re.compile(r"^```(?:sh)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A command, without the variables before it and the comment after it.
COMMAND = re.compile(
    r"^(?:[A-Z_]+=\S+ +)*(?:\S*/)?(make|maxjax|pip|python3?) +([^#\n]*)", re.MULTILINE)


def wrong_commands(text: str) -> list[str]:
    """The commands in a page's blocks that name a target, an option, an extra or a module that
    does not exist."""
    # A fence that closes a block of another language opens none.
    plain = re.sub(r"^```[a-rt-z]\w*\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [found.group() for block in SHELL.finditer(plain)
            for found in COMMAND.finditer(block.group(1))
            if not _exists(found.group(1), found.group(2).split())]


def _exists(program: str, words: list[str]) -> bool:
    if program == "make":
        return all("=" in word or word in TARGETS or not word[0].isalpha() for word in words[:1])
    if program == "maxjax":
        return not words[0].startswith("-") or f" {words[0]} " in _USAGE
    if program == "pip":
        extras = re.findall(r"(?:maxjax|\.)\[([\w,]+)\]", " ".join(words))
        return set(",".join(extras).split(",")) - {""} <= set(PROJECT["optional-dependencies"])
    if words[0] == "-m":
        return importlib.util.find_spec(words[1]) is not None
    return words[0].startswith("-") or (ROOT / words[0]).exists()


def test_commands_exist():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "compat" / "README.md"]
    texts = {page.relative_to(ROOT): page.read_text() for page in pages}
    assert {name: wrong for name, text in texts.items() if (wrong := wrong_commands(text))} == {}
    commands = [found.group() for text in texts.values() for block in SHELL.finditer(text)
                for found in COMMAND.finditer(block.group(1))]
    assert len(commands) > 20


def test_a_wrong_command_is_seen():
    text = ("```python\nmake = 1\n```\n```sh\nmake nothing   # no\nX=1 make test\nmaxjax --doctor\n"
            "maxjax --non\npip install 'maxjax[none]'\npython -m maxjax.none\n```\n")
    assert wrong_commands(text) == [
        "make nothing   ", "maxjax --non", "pip install 'maxjax[none]'", "python -m maxjax.none"]
