"""The groups of the reference's summary tables: what a name is for, by the file that defines it.

The code lies in files by subject, so a group is a list of files; names that files do not tell apart
(classes, values, options) have a group of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any

# Of each module, groups in the order of its page: title -> files, or kinds as `_kind` names them.
GROUPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "jax.numpy": {
        "Making arrays": ("_creation", "_filled", "_ranges", "_imported", "_grids"),
        "Elementwise functions": ("_elementwise", "_ufuncs", "_complex", "_special_values",
                                  "_special_functions", "_division", "_rounding", "_float_parts",
                                  "_hypot", "_ufunc_objects"),
        "Sums, extrema and statistics": ("_reductions", "_arg_reductions", "_moments",
                                         "_nan_reductions", "_quantiles", "_histograms",
                                         "_covariance", "_cumulative"),
        "Products": ("_contraction", "_einsum"),
        "Choosing and looking up": ("_where", "_indexing", "_nonzero", "_put", "_flat_indices",
                                    "_index_tricks_impl"),
        "Shapes": ("_shape", "_repeating"),
        "Joining and splitting": ("_joining", "_insertion", "_padding"),
        "Sorting and sets": ("_sorting", "_unique", "_sets"),
        "Comparing, and functions of functions": ("_logic",),
        "Matrices": ("_matrices",),
        "Signals and polynomials": ("_signal", "_polynomials"),
        "Dtypes and promotion": ("_scalar_types", "dtype"),
        "Constants": ("value",),
        "Files and printing": ("_npyio_impl", "_printing", "arrayprint"),
    },
    "jax": {
        "Compiling": ("api", "jit"),
        "Derivatives": ("autodiff", "jacobian", "linear_transpose", "checkpoint"),
        "Rules of one's own": ("custom_gradient", "custom_jvp", "custom_vjp"),
        "Mapping": ("vmap", "pmap", "shard_map_api", "smap"),
        "Arrays and devices": ("placement", "assembly", "devices", "_array_members",
                               "shape_struct"),
        "Shardings": ("sharding", "shardings", "meshes", "constraints"),
        "References": ("ref", "_refs"),
        "Callbacks": ("callback",),
        "Options": ("config", "options"),
        "Classes": ("maxjax", "target"),
        "Processes, names, switches": ("__init__", "core"),
    },
    "jax.lax": {
        "Elementwise functions": ("_elementwise", "_special_functions", "_polynomials"),
        "Control flow": ("cond", "scan", "while_loop", "_control"),
        "Shapes": ("_shape", "_broadcasting", "_joining"),
        "Reductions and cumulative functions": ("_reductions",),
        "Choosing": ("_selection",),
        "Slices, gathering and scattering": ("_slicing", "_gather_scatter", "gather_plan"),
        "Products": ("_contraction",),
        "Convolutions and windows": ("_window", "_reduce_window", "convolution"),
        "Sorting": ("_sorting",),
        "Fourier transforms": ("_fft", "fft"),
        "Conversions": ("_conversion",),
        "Between devices": ("_collectives", "_exchanges", "_mapped_axes", "_permutations",
                            "constraints"),
        "Solvers with derivatives": ("implicit",),
        "Random bits": ("_generators",),
        "Order and tokens": ("_barriers",),
        "Primitives": ("primitive",),
    },
    "jax.random": {
        "Keys": ("_keys",),
        "Samplers": ("_uniform", "_normal", "_inversion", "_distributions", "_discrete",
                     "_binomial"),
        "Choosing": ("_choice",),
    },
    "jax.nn": {
        "Activations": ("_activations",),
        "Normalization": ("_normalization",),
        "Attention": ("_attention",),
    },
}
OTHER = "Other names"


def grouped(module: str, names: Iterable[str], found: Callable[[str], Any]
            ) -> dict[str, list[str]]:
    """The names of a module by group, in the order of its page; one group without a title where
    the module has no groups."""
    titles = GROUPS.get(module, {})
    place = {file: title for title, files in titles.items() for file in files}
    groups: dict[str, list[str]] = {title: [] for title in (*titles, OTHER)}
    for name in names:
        groups[place.get(_kind(found(name)), OTHER)].append(name)
    if not titles:
        return {"": groups[OTHER]}
    return {title: names for title, names in groups.items() if names}


def _kind(value: Any) -> str:
    """The file that defines a name; for dtypes and plain values, which no file does, what they
    are."""
    if isinstance(value, (float, int, str, tuple, type(None))):
        return "value"
    if inspect.isclass(value) and value.__module__.startswith(("jax.numpy", "numpy")):
        return "dtype"
    if type(value).__module__ == "maxjax._ir.primitive":
        return "primitive"
    function = inspect.unwrap(value) if callable(value) else value
    code = getattr(function, "__code__", None)
    if code is not None:
        return PurePath(code.co_filename).stem
    module = getattr(function, "__module__", None) or type(function).__module__
    return str(module).rpartition(".")[2]
