"""The pages that are generated for the documentation site."""

from __future__ import annotations

import maxjax
from compat import differences, followed, report
from tests import ROOT
from tools import build_docs, reference


def test_links_lead_to_pages_of_the_site():
    page = build_docs.PAGES / "quick_start.md"
    text = ("see [options.md](options.md#platforms), [the matrix](../compat/matrix.md)\n"
            "and [code](../maxjax/core.py), [a script](../examples/custom_op.py):\n"
            "- a [site](https://example.org)\n```\n[0](x)\n```\n")
    assert build_docs.with_links(ROOT / "docs" / "quick_start.md", page, text) == (
        "see [Options](options.md#platforms), [the matrix](matrix.md)\nand code, "
        "[a script](examples/custom_op.md):\n\n"
        "- a [site](https://example.org)\n```\n[0](x)\n```\n")


def test_every_difference_is_on_the_page():
    page = build_docs.known_differences()
    assert all(row.reason in page for row in differences.differences())


def test_every_option_is_on_the_page():
    page = build_docs.options_and_variables()
    own = set(maxjax.config.own_names)
    for name in maxjax.config.names:
        shown = f"MAXJAX_{name.upper()}" if name in own else name
        assert page.replace("<wbr>", "").count(f"| <code>{shown}</code> |") == 1
    assert "MAXJAX_CACHE_DIR" in page


def test_every_page_is_in_the_site():
    config = (ROOT / "mkdocs.yml").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert [page for page in pages if f" {page}\n" not in config] == []


def test_docstrings_become_markdown():
    text = "Sums ``x``.\n\nArgs:\n  x: an array,\n    of any shape.\n\n>>> 1 + 1\n2"
    assert reference.markdown(text) == (
        "Sums `x`.\n\n**Args**\n\n- `x`: an array,\n  of any shape.\n\n```pycon\n>>> 1 + 1\n2\n```")


def test_commands_of_examples_stay_code():
    assert reference.markdown("\n    python x.py\n\nIt runs.") == "    python x.py\n\nIt runs."


def test_the_reference_has_the_public_names(tmp_path):
    pages = {page.stem: page.read_text() for page in reference.write(tmp_path / "pages")}
    assert len(pages) > 50
    assert "{ #jax.numpy.sin }" in pages["jax.numpy"]
    assert "einsum(subscripts, /, *operands" in pages["jax.numpy"]
    assert "{ #jax.debug.explain }" in pages["jax.debug"]
    assert "0x" not in "".join(line for page in pages.values() for line in page.splitlines()
                               if line.endswith(")") and "object at" in line)


def test_the_matrix_says_how_names_pass():
    text = report.card("trees", 34, 17, 51, 2)
    assert "51 of 51" in text and "34 agree, 17 pass with known differences; 2 out of scope" in text
    assert 'class="pass" style="width:66.67%"' in text
    assert "seconds" not in report.script_table([("a<b", "pass", "")])
    assert "a&lt;b" in report.script_table([("a<b", "pass", "")])
    stored = (ROOT / "compat" / "matrix.html").read_text()
    template = (ROOT / "compat" / "page.html").read_text().replace("{{JAX}}", followed())
    # The stored page is made of the present template, with the libraries' tests in it.
    assert stored.partition("</style>")[0] == template.partition("</style>")[0]
    assert report.libraries() in stored and '<th scope="row">chex</th>' in stored
    assert stored.index('id="matrix"') < stored.index('id="libraries-head"')
