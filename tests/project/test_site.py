"""The pages that are generated for the documentation site."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

import maxjax
from compat import differences, followed, report
from compat.scripts_runner import Record
from tests import ROOT
from tools import (
    build_docs,
    check_reference,
    doc_pictures,
    reference,
    reference_groups,
    search_index,
)


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


def test_results_are_sentences_and_errors_entries():
    text = "Returns:\n  A pair: the sum,\n  and ``x``.\n\nRaises:\n  KeyError: no ``x``."
    assert reference.markdown(text) == (
        "**Returns**\n\nA pair: the sum,\nand `x`.\n\n**Raises**\n\n- `KeyError`: no `x`.")


@pytest.mark.parametrize(("module", "name", "link"), [
    ("jax.numpy", "where", "[`where`](#jax.numpy.where)"),
    ("jax.lax", "jnp.where", "[`jnp.where`](jax.numpy.md#jax.numpy.where)"),
    ("jax.numpy.linalg", "linalg.inv", "[`linalg.inv`](#jax.numpy.linalg.inv)"),
    ("jax.numpy.linalg", "vdot", "[`vdot`](jax.numpy.md#jax.numpy.vdot)"),
    ("jax.numpy", "nowhere", "``nowhere``"),
])
def test_related_names_are_links(module, name, link):
    text = f"Sums.\n\nSee also: ``{name}``,\n``{name}``.\n\n>>> 1"
    assert reference._linked(text, module) == (
        f"Sums.\n\n**See also:** {link}, {link}.\n\n>>> 1")


def wrong(x, y):
    """A function.

    Args:
      x: an array, or
        a number.

    See also: ``where``, ``nowhere``.
    """


def test_what_a_docstring_lacks_is_named():
    assert list(check_reference.problems("jax.numpy.wrong", wrong)) == [
        "jax.numpy.wrong: Args: nothing about y",
        "jax.numpy.wrong: no Returns:",
        "jax.numpy.wrong: See also: there is no nowhere"]


def test_the_most_used_functions_have_a_reference():
    names = list(check_reference.names())
    assert len(names) == check_reference.MOST_USED and names[0] == "jax.numpy.array"
    assert [problem for name in names
            for problem in check_reference.problems(name, reference.found(name))] == []


def test_commands_of_examples_stay_code():
    assert reference.markdown("\n    python x.py\n\nIt runs.") == "    python x.py\n\nIt runs."


def test_the_reference_has_the_public_names(tmp_path):
    pages = {page.stem: page.read_text() for page in reference.write(tmp_path / "pages")}
    assert len(pages) > 50
    assert pages["jax.numpy"].count('<h3 id="jax.numpy.sin" markdown="1">jax.numpy.sin</h3>') == 1
    heading = r'<h3 id="jax.Array.__add__" markdown="1">jax.Array.\_\_add\_\_</h3>'
    assert heading in pages["jax.Array"]
    assert "einsum(subscripts, /, *operands" in pages["jax.numpy"]
    assert '<h3 id="jax.debug.explain" ' in pages["jax.debug"]
    assert "0x" not in "".join(line for page in pages.values() for line in page.splitlines()
                               if line.endswith(")") and "object at" in line)


def test_each_name_has_one_row_in_a_group(tmp_path):
    pages = {page.stem: page.read_text() for page in reference.write(tmp_path / "pages")}
    for module in ("jax", "jax.numpy", "jax.lax", "jax.random", "jax.nn"):
        tables, _, entries = pages[module].partition("\n## In detail\n")
        rows = re.findall(r"^\| \[`\S+`\]\(#(\S+)\) \|", tables, re.MULTILINE)
        anchors = re.findall(r'^<h3 id="(\S+)"', entries, re.MULTILINE)
        assert sorted(rows) == sorted(anchors) and len(rows) == len(set(rows)) > 30
        assert re.findall(r"^## (.*)$", tables, re.MULTILINE) == [
            title for title in (*reference_groups.GROUPS[module], reference_groups.OTHER)
            if f"\n## {title}\n" in tables]
        # What no group takes is what the files do not tell, and little.
        other = tables.partition(f"\n## {reference_groups.OTHER}\n")[2].count("\n| [")
        assert other < 5
    assert pages["jax.numpy"].index("#jax.numpy.where") < pages["jax.numpy"].index("#jax.numpy.pad")


def test_bars_in_code_stay_in_cells():
    assert reference._cell("`x / (|x| + 1)` or | y") == "`x / (|x| + 1)` or \\| y"


def test_modules_have_an_introduction(tmp_path):
    index = next(reference.write(tmp_path / "pages")).read_text()
    rows = re.findall(r"^\| \[(\S+)\]\(\S+\) \| \d+ \| *(.*?) *\|$", index, re.MULTILINE)
    assert len(rows) > 50
    assert [name for name, text in rows if len(text.split()) < 2] == []


def test_a_name_weighs_more_than_those_that_begin_with_it():
    found = search_index.weights(
        ["jax.numpy.cos", "jax.numpy.cosh", "jax.numpy.sum", "jax.Array.sum", "jax.Array"],
        {"jax.numpy.sum": 100.0, "jax.Array.sum": 50.0, "jax.numpy.cosh": 200.0})
    assert found["jax.numpy.cos"] > 3 * found["jax.numpy.cosh"]
    assert found["jax.numpy.sum"] > found["jax.Array.sum"]
    assert found["jax.Array"] > found["jax.Array.sum"]


def test_the_index_gets_words_and_weights(tmp_path):
    docs = [{"location": "reference/jax.numpy.html#jax.numpy.where", "title": "jax.numpy.where",
             "text": "", "boost": 1},
            {"location": "reference/jax.numpy.html#shapes", "title": "Shapes", "text": ""},
            {"location": "options.html", "title": "Options", "text": "", "boost": 1}]
    path = tmp_path / "search_index.json"
    path.write_text(json.dumps({"docs": docs}))
    search_index.weigh(path)
    name, heading, page = json.loads(path.read_text())["docs"]
    assert {"where", "jnp.where", "jax.numpy.where"} <= {*name["title"].split()}
    assert name["boost"] > 100 > 1 > heading["boost"] and page["boost"] == 1


def test_the_search_is_asked_for_the_most_used_names():
    asked = search_index.queries()
    assert {("jax.numpy.where", "jax.numpy.where"), ("where", "where"),
            ("jnp.where", "jax.numpy.where")} <= {*asked}
    assert len({wanted for query, wanted in asked if "." in wanted}) == search_index.MOST_USED


def test_pictures_are_drawings():
    drawn = doc_pictures.pictures()
    places = {name for page in (ROOT / "docs").glob("*.md")
              for name in re.findall(r"<!-- picture: (\w+) -->", page.read_text())}
    assert places == {*drawn}
    for name in ("graph", "timeline", "scripts", "programs"):
        ElementTree.fromstring(drawn[name]())


def test_the_matrix_says_how_names_pass():
    text = report.card("trees", 34, 17, 51, 2)
    assert "51 of 51" in text and "34 agree, 17 pass with known differences; 2 out of scope" in text
    assert 'class="pass" style="width:66.67%"' in text
    assert "a&lt;b" in report.script_table([("a<b", "pass", "1.0", "0.5", "")])
    stored = (ROOT / "compat" / "matrix.html").read_text()
    template = (ROOT / "compat" / "page.html").read_text().replace("{{JAX}}", followed())
    # The stored page is made of the present template, with the libraries' tests in it.
    assert stored.partition("</style>")[0] == template.partition("</style>")[0]
    assert report.libraries() in stored and '<th scope="row">chex</th>' in stored
    assert stored.index('id="matrix"') < stored.index('id="libraries-head"')


def test_scripts_are_put_into_the_matrix_as_it_stands(tmp_path):
    for name in ("matrix.md", "matrix.html"):
        (tmp_path / name).write_text((ROOT / "compat" / name).read_text())
    report.write_scripts([Record("n_body", "pass", 2.0, 0.54, ""),
                          Record("a_new_one", "fail", 1.0, 0.0, "5 | 6"),
                          Record("k_means", "skipped", 0.0, 0.0, "not installed: x")], tmp_path)
    report.write_scripts([Record("n_body", "skipped", 0.0, 0.0, "not installed: y")], tmp_path)
    before = (ROOT / "compat" / "matrix.md").read_text().splitlines()
    after = (tmp_path / "matrix.md").read_text().splitlines()
    rows = ["| n_body | pass | 2.0 | 0.5 |  |", "| a_new_one | fail |  |  | 5 \\| 6 |",
            "| k_means | skipped |  |  | not installed: x |"]
    assert {*after} - {*before} <= {*rows} <= {*after}
    assert [line for line in before if line not in after] in (
        [], [line for line in before if line.startswith("| n_body |")])
    page = (tmp_path / "matrix.html").read_text()
    assert '<td class="use">2.0</td><td class="use">0.5</td>' in page
    assert page.index('<th scope="row">a_new_one') < page.index('<th scope="row">n_body')


def test_the_matrix_keeps_its_link_back():
    """Links to parts that a page lacks are hidden, and only those."""
    template = (ROOT / "compat" / "page.html").read_text()
    assert "<!-- back -->" in template
    assert """querySelectorAll("nav a[href^='#']")""" in template
