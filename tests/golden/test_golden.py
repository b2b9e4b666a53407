"""Every golden file is what its program gives now."""

from __future__ import annotations

import difflib

import numpy as np
import pytest

from tests.golden import jaxprs, kernels, partitions  # noqa: F401 (they have programs)
from tests.golden.programs import FOLDER, GOLDENS, RENEW


@pytest.mark.parametrize("name", GOLDENS)
def test_the_text_is_as_recorded(name):
    golden = GOLDENS[name]
    expected = golden.path.read_text(encoding="utf-8") if golden.path.exists() else ""
    actual = golden.text()
    if actual != expected:
        difference = "".join(difflib.unified_diff(
            expected.splitlines(True), actual.splitlines(True), golden.path.name, "now"))
        pytest.fail(f"the text has changed; if that is meant: {RENEW} {name}\n{difference}",
                    pytrace=False)


def test_no_file_is_left_over():
    files = {path for path in FOLDER.iterdir() if path.suffix not in (".py", "")}
    assert files == {golden.path for golden in GOLDENS.values()}


def test_every_program_says_what_to_see():
    assert [name for name, golden in GOLDENS.items() if not golden.function.__doc__] == []


@pytest.mark.parametrize("name", ["softmax.mojo", "layer_norm.mojo", "column_sum_and_step.mojo"])
def test_kernels_do_not_depend_on_sizes(name):
    """Another batch size needs no other kernel."""
    golden = GOLDENS[name]
    other = [np.zeros((96, *x.shape[1:]), x.dtype) if x.ndim > 1 else x for x in golden.args]
    one, two = (kernels.kernel(golden.function, *args) for args in (golden.args, other))
    assert one.partition("\ncalls:")[0] == two.partition("\ncalls:")[0]
