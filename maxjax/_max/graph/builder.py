"""Builds the MAX graphs of a serialized program; runs in the compile worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from max.graph import DeviceRef, Graph, Module

from maxjax._ir.serialize import decode
from maxjax._max.graph.context import GraphContext, tensor_type
from maxjax._max.graph.device_context import DeviceContext
from maxjax._max.graph.kernel_library import package_path
from maxjax._primitives import all as _families  # noqa: F401  (they register themselves)


def build(module: Module, program: str, options: dict[str, Any]) -> list[Path]:
    """Adds a graph for each piece of the program: ``{"pieces": [[name, jaxpr], ...]}``.

    Options: ``directory``, where kernel libraries are kept; ``device``, "cpu" (none is the same),
    "simulated" or the number of the accelerator that the graphs are for.
    """
    extensions = [package_path(Path(options["directory"]))]
    for name, data in json.loads(program)["pieces"]:
        jaxpr = decode(data)
        context = context_for(options.get("device", "cpu"))
        with Graph(name, input_types=[tensor_type(var.aval, context.device)
                                      for var in jaxpr.invars],
                   module=module, custom_extensions=extensions) as graph:
            inputs = [value.tensor for value in graph.inputs]
            graph.output(*context.lower_jaxpr(jaxpr, [], inputs))
    return extensions


def context_for(device: str | int) -> GraphContext:
    """The lowering context of a device: see ``build``."""
    if device == "cpu":
        return GraphContext()
    return DeviceContext(DeviceRef.CPU() if device == "simulated" else DeviceRef.GPU(int(device)))
