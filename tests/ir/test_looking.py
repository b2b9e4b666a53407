"""Inspecting programs: equations' lines and scopes, explain, and the picture of a jaxpr."""

from __future__ import annotations

import itertools
import re
import shutil
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax._base import config
from maxjax._ir import drawing
from maxjax._max.mojo.plan import Plan

X = np.ones((4, 3), np.float32)


def scoped(j, v):
    with j.named_scope("outer"):
        a = j.lax.sin(v)
        with j.named_scope("inner"):
            b = j.lax.cos(a)
    return b


def loop(j, v):
    return j.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, j.lax.sin(c[1])), (0, v))


def twice(j, v):
    def long(w):
        for _ in range(12):
            w = j.lax.sin(w)
        return w
    inner = j.jit(long)
    return inner(v) + inner(v)


def printing(j, v):
    j.debug.print("{}", v)
    return v * 2


@pytest.mark.parametrize("function", [scoped, loop, twice, printing])
@pytest.mark.parametrize("options", [
    {"source_info": True}, {"name_stack": True}, {"source_info": True, "name_stack": True},
    {"print_shapes": False}, {"print_effects": True}, {}], ids=lambda options: "+".join(options))
def test_what_stands_behind_equations(function, options):
    if function is printing and ("source_info" in options or "name_stack" in options):
        pytest.skip("JAX leaves the line of a debug_print out")
    texts = [j.make_jaxpr(lambda v, j=j: function(j, v))(np.float32(1)).pretty_print(**options)
             for j in (maxjax, jax)]
    assert texts[0] == texts[1]


def test_lines_of_a_gradient():
    text = maxjax.make_jaxpr(maxjax.grad(lambda v: scoped(maxjax, v)))(1.0).pretty_print(
        source_info=True)
    first = scoped.__code__.co_firstlineno
    assert f"test_looking.py:{first + 2}:12 (scoped)" in text
    assert f"test_looking.py:{first + 4}:16 (scoped)" in text
    assert maxjax.make_jaxpr(maxjax.lax.sin)(1.0).eqns[0].pretty_print(source_info=True)


def test_a_backward_pass_has_the_lines_of_what_is_differentiated():
    def wave(j, v):
        y = j.numpy.sin(v) * v
        return j.numpy.exp(
            y)

    def lines(j):
        text = j.make_jaxpr(j.grad(lambda v: wave(j, v)))(1.0).pretty_print(source_info=True)
        return re.findall(r"= (\w+).*test_looking.py:(\d+)", text)

    theirs = lines(jax)
    assert len(theirs) == 9
    assert [pair for pair in lines(maxjax) if pair[0] != "convert_element_type"] == theirs


# --- explain --------------------------------------------------------------------------------------

def mixed(params, x):
    def body(c, row):
        return c + maxjax.numpy.sin(row), maxjax.lax.cond(
            row.sum() > 0, lambda v: v * 2, lambda v: -v, row)
    c, ys = maxjax.lax.scan(body, params["b"], x)
    _, last = maxjax.lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * params["b"]), (0, c))
    return maxjax.nn.relu(last), maxjax.numpy.diagonal(
        maxjax.scipy.linalg.qr(ys.T @ ys, pivoting=True)[1]), maxjax.jit(
        maxjax.numpy.tanh)(c)


ARGUMENTS = ({"b": np.ones(3, np.float32)}, X)


def test_explain_shows_the_program_and_its_cost():
    found = maxjax.debug.explain(mixed, *ARGUMENTS)
    text = str(found)
    assert found.flops == sum(flops for flops, _ in found.piece_costs) > 0
    assert found.bytes == X.nbytes + 12 + 3 * 12
    assert re.search(r"piece \d on host: qr", text) and "qr: MAX has no LAPACK" in text
    assert f"{found.flops:.4g} flops" in text and "bytes in and out" in text
    simplified = str(found.jaxpr)
    assert all(line.strip() in text for line in simplified.splitlines())
    assert "jit[" not in simplified and "scan[" in simplified


def test_explain_leaves_long_programs_out():
    def long(x):
        for n in range(60):
            x = maxjax.numpy.sin(x) * (n + 1)
        return x
    found = maxjax.debug.explain(long, X)
    assert len(found.jaxpr.eqns) > 40
    assert "which are in the attribute jaxpr" in str(found) and "let" not in str(found)


def test_explain_of_dynamic_sizes():
    dynamic = maxjax.jit(lambda x: x[1:] if x.shape[0] > 3 else x, dynamic_dims={0: {0: "n"}})
    dynamic(X)
    dynamic(X[:3])
    found = maxjax.debug.explain(dynamic, X)
    assert len(found.guards) == 2
    assert any(guard.startswith("n > 3 (") and "test_looking.py" in guard
               for guard in found.guards[0])
    assert "variant 1 for all sizes of 2 and more, where n <= 3" in str(found)


def test_explain_compiles_nothing(monkeypatch):
    planned = []
    original = Plan.__init__
    monkeypatch.setattr(Plan, "__init__", lambda *args: (planned.append(1), original(*args))[1])
    found = maxjax.debug.explain(lambda x: maxjax.numpy.sin(x) * 2, X)
    assert len(planned) == 1 and found.state == "interpreted"


# --- the picture ----------------------------------------------------------------------------------

def parsed(text):
    """Nodes with labels, arrows and boxes of a graph in DOT; checks its form."""
    nodes, arrows, boxes, depth = {}, [], [], 0
    string = r'"((?:[^"\\]|\\.)*)"'
    for line in text.splitlines():
        line = line.strip()
        if line.startswith(("digraph ", "subgraph ")):
            assert line.endswith("{")
            depth += 1
        elif line == "}":
            depth -= 1
        elif match := re.fullmatch(rf"(n\d+) \[label={string}(, fillcolor=\"#\w+\")?\];", line):
            assert match[1] not in nodes
            nodes[match[1]] = match[2]
        elif match := re.fullmatch(rf"(n\d+) -> (n\d+) \[label={string}\];", line):
            assert depth == 1       # in a box it would draw both ends into the box
            arrows.append((match[1], match[2], match[3]))
        elif match := re.fullmatch(rf'graph \[label={string}, style="rounded", .*\];', line):
            boxes.append(match[1])
        else:
            assert re.fullmatch(r"(graph|node|edge) \[.*\];", line), line
    assert depth == 0
    assert all(source in nodes and target in nodes for source, target, _ in arrows)
    return nodes, arrows, boxes


def test_a_graph_has_what_the_jaxpr_has():
    nodes, arrows, boxes = parsed(maxjax.debug.graph(lambda x, y: (x * 2 + y, x), X, X))
    assert sorted(nodes.values()) == sorted([
        r"x\nf32[4,3]", r"y\nf32[4,3]", "mul(·, 2.0)", "add", r"result 0\nf32[4,3]",
        r"result 1\nf32[4,3]"])
    named = {label.split(r"\n")[0].split("(")[0]: name for name, label in nodes.items()}
    assert {(a, b) for a, b, _ in arrows} == {
        (named["x"], named["mul"]), (named["mul"], named["add"]), (named["y"], named["add"]),
        (named["add"], named["result 0"]), (named["x"], named["result 1"])}
    assert {label for _, _, label in arrows} == {"f32[4,3]"} and not boxes


def test_loops_branches_and_calls_are_boxes():
    nodes, _, boxes = parsed(maxjax.debug.graph(mixed, *ARGUMENTS))
    assert {"scan, 4 times", "while", "cond", "branch 0", "branch 1", "condition", "body"} <= set(
        boxes)
    assert any(title.startswith("jit") for title in boxes)
    assert any(label.startswith("p") and "['b']" in label for label in nodes.values())
    # Every equation but those with boxes is a node.
    assert sum(label.startswith("sin") for label in nodes.values()) == 1


def rectangles(svg):
    """The rectangles of nodes and of boxes, each (left, top, right, bottom), and the whole size."""
    tree = ElementTree.fromstring(svg)
    found = {True: [], False: []}
    for each in tree.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, width, height = (float(each.get(name)) for name in ("x", "y", "width", "height"))
        found[each.get("fill") == "none"].append((x, y, x + width, y + height))
    return found[False], found[True], (float(tree.get("width")), float(tree.get("height")))


@pytest.mark.parametrize("simplified", [False, True])
def test_a_drawing_without_graphviz_shows_each_node_apart(simplified):
    text = maxjax.debug.graph(mixed, *ARGUMENTS, simplified=simplified)
    names, arrows, titles = parsed(text)
    svg = drawing.svg(text)
    nodes, boxes, (width, height) = rectangles(svg)
    assert len(nodes) == len(names) and svg.count("<path d=") == len(arrows) + 1    # and the tip
    assert len(boxes) == len(titles) + 1        # and the whole
    for number, (left, top, right, bottom) in enumerate(nodes):
        assert 0 <= left < right <= width and 0 <= top < bottom <= height
        assert not any(left < other[2] and other[0] < right and top < other[3] and other[1] < bottom
                       for other in nodes[:number])
    def is_within(a, b):
        return b[0] <= a[0] and b[1] <= a[1] and a[2] <= b[2] and a[3] <= b[3]

    for a, b in itertools.combinations(boxes, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart or is_within(a, b) or is_within(b, a)


def test_values_flow_down_in_a_drawing():
    svg = drawing.svg(maxjax.debug.graph(lambda x, y: (jnp.sin(x) * y, x), X, X))
    nodes, _, _ = rectangles(svg)
    tops = {text.text: float(text.get("y")) for text in ElementTree.fromstring(svg).iter(
        "{http://www.w3.org/2000/svg}text")}
    assert tops["x"] < tops["sin"] < tops["mul"] < tops["result 0"] and tops["y"] < tops["mul"]


def test_notebooks_get_a_drawing_where_graphviz_is_missing(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    graph = maxjax.debug.graph(lambda x: x * 2 < 3, 1.0)
    assert graph._repr_svg_() == graph.svg() == drawing.svg(graph)
    assert "lt(·, 3.0)" in graph.svg()


def test_the_picture_of_what_runs():
    text = maxjax.debug.graph(mixed, *ARGUMENTS, simplified=True)
    nodes, _, boxes = parsed(text)
    assert not any(title.startswith("jit") for title in boxes)
    assert any("qr" in label and "host: MAX has no LAPACK" in label for label in nodes.values())


def test_results_without_equations_and_with_constants():
    table = maxjax.numpy.arange(3.0)
    nodes, arrows, _ = parsed(maxjax.debug.graph(lambda x: (x, 1.0, table + x), np.float32(2)))
    assert any(label.startswith("constant") for label in nodes.values())
    assert len([label for label in nodes.values() if label.startswith("result")]) == 3
    assert len(arrows) == 5


def test_an_explanation_opens_with_a_sentence():
    jitted = maxjax.jit(lambda x: jnp.sin(x) * 2)

    def said():
        first, second, *_ = str(maxjax.debug.explain(jitted, X)).splitlines()
        return first, second

    first, second = said()
    assert first == "<lambda>: not called yet; compile='never' has it interpreted"
    assert second.startswith("  2 operations in 1 piece, ")
    with config.compile_mode("auto"):
        # Whether some other test has compiled it is not known here.
        assert said()[0] in [f"<lambda>: not called yet; {rest}" for rest in (
            "compiled once its calls have cost more than that takes", "it is compiled already")]
        for _ in range(2):
            jitted(X)
        assert said()[0] == ("<lambda>: interpreted, 2 calls so far, which cost too little to gain "
                             "by compiling")
    assert str(maxjax.debug.explain(lambda x: x, X)).splitlines()[0].endswith(
        "not called yet: there is nothing to compute")


def test_complex_numbers_are_not_the_reason_where_others_are_compiled():
    explained = str(maxjax.debug.explain(lambda x: jnp.cumprod(x * 2) * 2, X + 0j))
    assert "cumprod: cumprod of complex64 has no kernel" in explained
    assert "MAX has no complex" not in explained


def test_a_long_program_is_folded_by_lines():
    def layers(x, w):
        for _ in range(250):
            x = maxjax.numpy.sin(x) + 1
            x = x @ w
        return x.sum()

    x, w = np.ones((4, 512), np.float32), np.ones((512, 512), np.float32)
    explained = maxjax.debug.explain(layers, x, w)
    first = layers.__code__.co_firstlineno
    assert [(line.line.rpartition(":")[2].split()[0], line.equations) for line in explained.lines
            if line.equations > 1] == [(str(first + 3), 250), (str(first + 2), 500)]
    assert explained.lines[0].flops == 250 * 2 * 4 * 512 * 512
    assert sum(line.equations for line in explained.lines) == len(explained.jaxpr.eqns) == 751
    text = str(explained)
    assert "by line of the source" in text and "sin x250" in text and "dot_general x250" in text
    assert len(text.splitlines()) < 30 and "estimated" in text and " ms " not in text


def test_times_are_measured_by_lines():
    def slow(x):
        y = maxjax.numpy.sort(x)
        return y[0] + 1

    x = np.random.default_rng(0).random(200_000, np.float32)
    explained = maxjax.debug.explain(slow, x, measure=True)
    assert explained.lines[0].line.split(":")[-1].startswith(str(slow.__code__.co_firstlineno + 1))
    assert explained.lines[0].seconds > 10 * sum(line.seconds for line in explained.lines[1:])
    assert " ms " in str(explained) and "measured in the interpreter" in str(explained)
    assert explained.jaxpr.eqns and explained.interpreted_calls == 0


def test_many_lines_end_in_one():
    text = "def many(x):\n" + "".join(f"    x = jnp.sin(x) * {n + 2}\n" for n in range(60))
    names = {"jnp": maxjax.numpy}
    exec(compile(text + "    return x\n", "many.py", "exec"), names)
    shown = str(maxjax.debug.explain(names["many"], X))
    assert "40 other lines" in shown and "many.py:2 (many): sin, mul" in shown


# --- the names of transformations -----------------------------------------------------------------

def _grown(j, v):
    with j.named_scope("outer"):
        a = j.lax.exp(v)
        with j.named_scope("inner"):
            return a * v


def _differentiated(j, v):
    with j.named_scope("around"):
        return j.grad(lambda w: _grown(j, w))(v)


def _in_a_loop(j, v):
    def body(carry, _):
        with j.named_scope("body"):
            return j.lax.sin(carry) * carry, None
    return j.lax.scan(body, v, None, length=3)[0]


def _again(j, v):
    def called(w):
        with j.named_scope("called"):
            return j.lax.sin(w)
    with j.named_scope("caller"):
        return j.jit(called)(v)


def _applied_outside(j, v):
    with j.named_scope("here"):
        out, back = j.vjp(lambda w: _grown(j, w), v)
    with j.named_scope("there"):
        return back(out)


def _with_a_rule(j, v):
    @j.custom_vjp
    def ruled(w):
        with j.named_scope("value"):
            return j.lax.sin(w)

    def forward(w):
        with j.named_scope("forward"):
            return ruled(w), j.lax.exp(w)

    def backward(kept, cotangent):
        with j.named_scope("backward"):
            return (kept * cotangent,)

    ruled.defvjp(forward, backward)
    return ruled(v)


TRANSFORMED = {
    "grad": _differentiated,
    "jvp": lambda j, v: j.jvp(lambda w: _grown(j, w), (v,), (v,)),
    "vmap": lambda j, v: j.vmap(lambda w: _grown(j, w))(v[None]),
    "vmap of grad": lambda j, v: j.vmap(lambda w: _differentiated(j, w))(v[None]),
    "grad of vmap": lambda j, v: j.grad(
        lambda w: j.vmap(lambda u: _grown(j, u))(w[None]).sum())(v),
    "grad of grad": lambda j, v: j.grad(lambda w: _differentiated(j, w))(v),
    "linear": lambda j, v: j.linearize(lambda w: _grown(j, w), v)[1](v),
    "loop": _in_a_loop,
    "jvp of a loop": lambda j, v: j.jvp(lambda w: _in_a_loop(j, w), (v,), (v,)),
    "vmap of a loop": lambda j, v: j.vmap(lambda w: _in_a_loop(j, w))(v[None]),
    "call": _again,
    "grad of a call": lambda j, v: j.grad(lambda w: _again(j, w))(v),
    "grad twice of a call": lambda j, v: j.grad(j.grad(lambda w: _again(j, w)))(v),
    "checkpoint": lambda j, v: j.vjp(j.checkpoint(lambda w: _grown(j, w)), v)[0],
    "rule": lambda j, v: j.grad(lambda w: _with_a_rule(j, w))(v),
    "rule in a call": lambda j, v: j.grad(j.jit(lambda w: _with_a_rule(j, w)))(v),
    "applied outside": _applied_outside,
}


@pytest.mark.parametrize("function", TRANSFORMED.values(), ids=TRANSFORMED)
def test_names_say_what_was_transformed(function):
    def names(closed):
        for eqn in closed.eqns:
            yield eqn.primitive.name, str(eqn.source_info.name_stack)
            for inner in eqn.params.values():
                if hasattr(inner, "eqns"):
                    yield from names(inner)

    ours, theirs = (sorted(names(j.make_jaxpr(lambda v, j=j: function(j, v))(np.float32(1))))
                    for j in (maxjax, jax))
    assert ours == theirs


def test_recomputed_equations_say_so():
    def names(j):
        def function(v):
            return j.grad(j.checkpoint(lambda w: _grown(j, j.lax.sin(w))))(v)
        *_, again = j.make_jaxpr(function)(np.float32(1)).eqns
        return {str(eqn.source_info.name_stack) for eqn in again.params["jaxpr"].eqns}

    assert names(maxjax) == names(jax)
