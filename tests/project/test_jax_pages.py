"""The pages of JAX's documentation as cells, and how their outcomes compare."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from compat import jax_pages
from compat.jax_pages import Outcome

PAGE = """
# A page
```{code-cell} ipython3
:tags: [raises-exception]

import jax.numpy as jnp
x = jnp.arange(3)
x + 1
```
```{code-cell}
---
tags: [a]
---
print(x.sum())
```
Text.
  ```python
  %matplotlib inline
  x[0] = 1
  ```
```
>>> y = [1,
...      2]
>>> len(y)
2
```
```bash
echo no
```
```python
this is no Python
```
"""


def test_cells_of_all_forms():
    assert jax_pages.cells(PAGE) == [
        "import jax.numpy as jnp\nx = jnp.arange(3)\nx + 1", "print(x.sum())",
        "%matplotlib inline\nx[0] = 1\n", "y = [1,\n     2]", "len(y)", "this is no Python\n"]


def test_a_page_runs_on_both(tmp_path):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(PAGE)
    assert jax_pages.pages(tmp_path, []) == [page] and not jax_pages.pages(tmp_path, ["other"])
    theirs, ours = (jax_pages.run(page, tmp_path, name) for name in jax_pages.LIBRARIES)
    assert ours[0] == Outcome(None, "", "Array([1, 2, 3], dtype=int32)")
    assert ours[1] == Outcome(None, "3\n", None) and ours[-2:] == [Outcome(None, "", "2"), None]
    assert ours[2].error.startswith("TypeError: JAX arrays are immutable")
    assert jax_pages.counts(list(zip(ours, theirs, strict=True))) == {"same": 5}


def test_outcomes_compare():
    def kind(ours, theirs):
        return jax_pages.compared(Outcome(None, ours, None), Outcome(None, theirs, None))

    assert kind("<maxjax.A at 0x7f1> in 3 ms", "<jax.A at 0x8a>  in 12.5 ms\n") == "same"
    assert kind("[1.0000001 2]", "[1. 2]") == "digits" and kind("[1.1 2]", "[1. 2]") == "other"
    assert jax_pages.compared(Outcome(None, "", "1"), Outcome("TypeError: a", "", None)) == "other"
    assert jax_pages.counts([(None, Outcome(None, "", None)), (None, None), (
        Outcome(None, "", None), Outcome("NameError: plt", "", None))]) == {"none": 1}
