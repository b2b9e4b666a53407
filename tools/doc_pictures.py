"""The pictures of the site's pages, at ``<!-- picture: NAME -->``: SVG in the page's colours."""

from __future__ import annotations

import functools
import gzip
import json
import re
import tempfile
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import maxjax as jax
import maxjax.numpy as jnp
from benchmarks import plots
from maxjax._ir import drawing
from maxjax.sharding import AxisType, NamedSharding
from maxjax.sharding import PartitionSpec as P

ROOT = Path(__file__).resolve().parents[1]
# A colour for each category of spans that the timeline shows, in the order of its rows.
SPANS = {"annotation": "#8a94a6", "trace": "#3b82d6", "plan": "#8e5bd0", "compile": "#d9822b",
         "tier 0": "#2f9e6e", "tier 1": "#1f7a8c", "operation": "#c2557a"}


def pictures() -> dict[str, Callable[[], str]]:
    """What draws the picture of each name."""
    measured = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    return {"layer": layer, "graph": graph, "timeline": timeline,
            **{name: functools.partial(scaled, themes["page"])
               for name, themes in plots.plots(measured).items()}}


def scaled(svg: str) -> str:
    """A drawing that a narrow page makes smaller."""
    return re.sub(r'width="(\d+)" height="(\d+)"(?: viewBox="[^"]*")?',
                  r'viewBox="0 0 \1 \2" style="width: \1px; max-width: 100%"', svg, count=1)


def layer() -> str:
    """The shardings of the tutorial's layer."""
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    shapes = {(16, 32): P(None, "model"), (32, 16): P("model"), (8, 16): P("data")}
    up, down, x = (jax.device_put(jnp.ones(shape), NamedSharding(mesh, spec))
                   for shape, spec in shapes.items())
    explained = jax.sharding.explain(lambda up, down, x: jax.nn.relu(x @ up) @ down, up, down, x)
    return scaled(explained.svg())


def graph() -> str:
    """The graph of a small program."""
    def unit(x, y):
        z = jnp.sin(x) * y
        return z / jnp.sqrt(jnp.sum(z * z))

    return scaled(drawing.svg(jax.debug.graph(unit, jnp.ones(8), jnp.ones(8))))


def timeline() -> str:
    """The spans of a small program's profile, a row a category."""
    def layer(w, x):
        return jnp.tanh(x @ w) @ w.T

    jax.jit(lambda w, x: layer(w, x) * 0.5)(jnp.ones((2, 2)), jnp.ones((2, 2)))    # imports
    step = jax.jit(layer)
    with tempfile.TemporaryDirectory() as folder:
        w, x = jnp.full((16, 16), 0.1), jnp.ones((64, 16))
        with jax.profiler.trace(folder):
            for number in range(4):
                with jax.profiler.StepTraceAnnotation("step", step_num=number):
                    x = step(w, x)
                    (x * 0.5).block_until_ready()
        (path,) = Path(folder).rglob("*.trace.json.gz")
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    spans = [event for event in events if event.get("ph") == "X" and event.get("cat") in SPANS]
    return drawn_timeline(spans)


def drawn_timeline(spans: list[dict[str, Any]]) -> str:
    """Spans of Chrome's trace format, with ``ts`` and ``dur`` in microseconds, a row a category."""
    rows = [category for category in SPANS if any(span["cat"] == category for span in spans)]
    start = min(span["ts"] for span in spans)
    length = max(span["ts"] + span["dur"] for span in spans) - start
    width, left, row = 620, 96, 26
    height = 18 + row * len(rows) + 22
    scale = (width - left - 10) / length
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">']
    for number, category in enumerate(rows):
        y = 12 + row * number
        out.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{category}</text>')
        for span in spans:
            if span["cat"] == category:
                at = left + (span["ts"] - start) * scale
                out.append(
                    f'<rect x="{at:.1f}" y="{y}" width="{max(span["dur"] * scale, 1):.1f}" '
                    f'height="{row - 6}" rx="2" fill="{SPANS[category]}">'
                    f"<title>{escape(str(span['name']))}: {span['dur']:.0f} µs</title></rect>")
    foot = height - 6
    out += [f'<text x="{left}" y="{foot}" font-size="11">0</text>',
            f'<text x="{width - 10}" y="{foot}" font-size="11" text-anchor="end">'
            f"{length / 1000:.1f} ms</text>", "</svg>"]
    return "\n".join(out)
