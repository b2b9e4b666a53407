"""Our notebooks run in the kernel of maxjax, and show what they should."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from maxjax._runtime import notebooks
from maxjax.version import JAX_VERSION
from tests import ROOT

FOLDER = ROOT / "examples" / "notebooks"


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    """The environment of a Jupyter that has the kernel."""
    folder = tmp_path_factory.mktemp("jupyter")
    patch = pytest.MonkeyPatch()
    for name, value in {"JUPYTER_DATA_DIR": str(folder), "IPYTHONDIR": str(folder / "ipython"),
                        "PYTHONPATH": str(ROOT), "MAXJAX_COMPILE": "never"}.items():
        patch.setenv(name, value)
    subprocess.run([sys.executable, "-m", "maxjax", "--install-kernel"], check=True,
                   env=os.environ.copy(), capture_output=True)
    yield folder
    patch.undo()


def outputs(notebook):
    """All that a notebook shows, by kinds: a list of dictionaries."""
    return [{"text/plain": output["text"]} if output["output_type"] == "stream" else output["data"]
            for cell in notebook.cells for output in cell.get("outputs", ())]


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.ipynb")))
def test_a_notebook_runs_and_shows_its_outputs(name, jupyter, tmp_path):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)      # none is kept in the file
    NotebookClient(notebook, timeout=120, kernel_name=notebooks.NAME,
                   resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = outputs(notebook)
    text = "\n".join(output["text/plain"] for output in shown if "text/plain" in output)
    kinds = {kind for output in shown for kind in output}
    if name == "tour":
        assert f"('maxjax', '{JAX_VERSION}')" in text and "operations in 1 piece," in text
        assert "digraph" in text and "Attempted boolean conversion of traced array" in text
    elif name == "sharding":
        assert "image/svg+xml" in kinds and "text/html" in kinds
        assert "P(" in text
    else:
        assert " -> " in text and "Statistics(" in text


def test_a_cell_can_be_interrupted(jupyter):
    kernel = KernelManager(kernel_name=notebooks.NAME)
    kernel.start_kernel()
    client = kernel.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=300)
        client.execute("import jax, jax.numpy as jnp\nx = jnp.ones(10)\nprint('begun')\n"
                       "while True:\n    x = jnp.sin(x).block_until_ready()",
                       stop_on_error=False)
        while client.get_iopub_msg(timeout=60)["msg_type"] != "stream":
            pass
        time.sleep(0.3)
        kernel.interrupt_kernel()
        while (message := client.get_iopub_msg(timeout=30))["msg_type"] != "error":
            pass
        assert message["content"]["ename"] == "KeyboardInterrupt"
        reply = client.execute_interactive("assert x.shape == (10,); jnp.sum(x) + 1", timeout=30)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


class Screen:
    """A stream that shows the last line as a terminal does."""

    def __init__(self):
        self.line = ""

    def isatty(self):
        return True

    def write(self, text):
        for part in text.split("\r"):
            self.line = part + self.line[len(part):]

    def flush(self):
        pass


def test_lines_are_written_over():
    screen = Screen()
    assert notebooks.rewrites_lines(screen)
    notebooks.write_over(screen, "compiling: 1 s")
    notebooks.write_over(screen, "short")
    assert screen.line.rstrip() == "short"
    notebooks.write_over(screen, "")
    assert screen.line.strip() == ""


class Log:
    """What a program puts in the place of a stream can often do nothing but write."""

    def write(self, text):
        pass


def test_streams_that_show_no_lines():
    closed = io.StringIO()
    closed.close()
    assert not any(map(notebooks.rewrites_lines, [None, closed, Log()]))
