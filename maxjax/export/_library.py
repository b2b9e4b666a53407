"""``library``: a function as a shared library for C."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxjax._base import pytree
from maxjax._base.signatures import leaf_names
from maxjax._higher_order.exported import Exported
from maxjax._higher_order.exporting import export_function
from maxjax._higher_order.function_stages import jitted_form
from maxjax._higher_order.jit_function import make_jit
from maxjax._runtime.c_libraries import Files, write
from maxjax._runtime.placement import default_backend
from maxjax.version import JAX_VERSION, __version__


def library(f: Callable[..., Any], *args: Any, path: str | os.PathLike[str],
            name: str | None = None, threads: int | None = None, target: str | None = None,
            lapack: str | os.PathLike[str] | None = None, **kwargs: Any) -> Files:
    """Writes a function as a shared library, which programs in C and other languages call.

    A call needs no Python, reads no files, and may be made from several threads at once. The
    library has all kernels and constants of the program, and needs the C library alone, or LAPACK.

    Args:
      f: a function, jitted or not, or what ``export`` has made.
      args, kwargs: of which only the types matter: arrays or ``ShapeDtypeStruct``. Where sizes
        are symbolic, the C function takes them; each needs a greatest value.
      path: a folder, in which ``lib<name>.so``, ``<name>.h`` and ``<name>.json`` are written. The
        last one says what the library needs.
      name: of the C function; by default that of ``f``.
      threads: how many may share a large call, by default as many as there are processors here.
        They are started by the library's ``<name>_threads``; without, a call runs on its caller's
        thread. With 1 there is none to start.
      target: the processor to compile for (``"x86-64-v3"``, say), by default this machine's.
      lapack: a library of LAPACK and BLAS, with integers of 32 bits, to link factorizations and
        solvers with. By default SciPy's is copied to the folder with what it needs.

    Returns:
      The paths of the files, as ``library``, ``header`` and ``manifest``.

    Raises:
      NotImplementedError: it has something that only Python can compute; the message says what.
      ValueError: there can be no C function of that name.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> files = jax.export.library(lambda x: x * 2, jnp.ones(3), path=folder.name, name="twice")
    >>> files.header.name
    'twice.h'
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    if isinstance(f, Exported):
        if args or kwargs:
            raise ValueError("an exported function has its types: there are no arguments to give")
        # A function that JAX has saved has a program of its own for all sizes.
        exported = f
        names = leaf_names(f.in_tree.spec, "args[{}]".format, "{}".format)
    else:
        jitted = jitted_form(f) or make_jit(f)
        _, _, tree, static = jitted._trace_abstract(args, kwargs)
        names = jitted._argument_names(tree, static)
        exported = export_function(jitted, args, kwargs, (default_backend(),), (), is_saved=False)
    if exported.nr_devices > 1:
        raise NotImplementedError(
            f"{exported.fun_name} is for {exported.nr_devices} devices: a library has one")
    chosen = re.sub(r"\W+", "_", exported.fun_name).strip("_") if name is None else name
    paths, _, _ = pytree.flatten_with_path(pytree.numbered(exported.out_tree.spec))
    return write(exported, chosen, names, ["result" + pytree.path_string(path) for path in paths],
                 Path(path),
                 made_by=f"maxjax {__version__} (JAX {JAX_VERSION})", threads=threads,
                 target=target, lapack=None if lapack is None else Path(lapack))
