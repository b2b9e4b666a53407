"""The world of JAX's tests: ``jax`` is maxjax, ``jax._src`` a front of JAX's private modules.

A test says what it tests by public names, and these are maxjax's. It gets at its tools by private
ones, and of those a front gives, in this order:

- what ``STANDINS`` says, for tools that must know maxjax's arrays, options or devices;
- maxjax's object, where the private one is public too under another name (``jax._src.api.jit``);
- maxjax's error of that name, and maxjax's option for a state of JAX's configuration;
- the real private object, which is noted in ``World.private``. A test that fails with such an
  object in hand has most likely handed it to maxjax, which cannot know it.

The modules of helpers (``reference.HELPERS``) are executed again in this world, so that what they
compare with is maxjax.
"""

from __future__ import annotations

import enum
import functools
import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import maxjax
import maxjax.numpy as jnp
from compat.jax_tests.reference import HELPERS, PRIVATE, Reference, is_jax
from maxjax import __main__ as command
from maxjax._base import errors, meshes
from maxjax._base.config import config
from maxjax._base.options import ExplicitX64Mode
from maxjax._primitives.convert import convert_element_type

# Options that real private functions read too.
SHARED_OPTIONS = ("jax_enable_x64", "jax_numpy_dtype_promotion", "jax_numpy_rank_promotion",
                  "jax_explicit_x64_dtypes", "jax_default_prng_impl", "jax_threefry_partitionable")
_KINDS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class World(command.JaxFinder):
    """Finds maxjax under JAX's public names and fronts under its private ones.

    Attributes:
      private: the private objects of JAX's that were asked for, ``module.name``.
    """

    def __init__(self, reference: Reference) -> None:
        super().__init__()
        self.reference = reference
        self.private: set[str] = set()
        self.standins = standins(reference)

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if self.reference.is_visible:
            return None
        # `from jax.x import y` asks for y in the module that jax.x is.
        name = fullname.removeprefix("max")
        if name in HELPERS or f"{name}.".startswith(tuple(f"{top}." for top in PRIVATE)):
            self.reference.module(name)      # raises what the real import raises
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return super().find_spec(fullname, path, target) if is_jax(fullname) else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        name = spec.name.removeprefix("max")
        if name in HELPERS:
            module = ModuleType(name)
            module.__file__ = self.reference.module(name).__file__
            return module
        if name.startswith(PRIVATE):
            return Front(name, self)
        return super().create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in HELPERS:
            path = str(module.__file__)
            exec(compile(Path(path).read_bytes(), path, "exec", dont_inherit=True),
                 module.__dict__)
        else:
            super().exec_module(module)

    def standin(self, module: str, name: str) -> Callable[[], Any] | None:
        """Gives the tool that stands for a private object because it must know maxjax."""
        return self.standins.get(f"{module.removeprefix('jax._src.')}.{name}")

    def counterpart(self, module: str, name: str, theirs: Any, caller: str) -> Any:
        """What stands for a private object."""
        if isinstance(theirs, ModuleType):
            return importlib.import_module(theirs.__name__) if is_jax(theirs.__name__) else theirs
        if id(theirs) in self.reference.counterparts:
            return self.reference.counterparts[id(theirs)]
        if isinstance(theirs, type) and issubclass(theirs, BaseException):
            ours = getattr(errors, name, None)
            if ours is not None:
                return ours
        ours = self._of_libraries(module, name)
        # Functions that pickles only name are strings there.
        if ours is not None and callable(ours) >= callable(theirs):
            return ours
        states = self.reference.module("jax._src.config")
        if isinstance(theirs, (states.State, states.Flag)) and theirs._name in config._options:
            return config.option(theirs._name)
        if caller not in HELPERS and not isinstance(theirs, (str, int, float, tuple, type(None))):
            self.private.add(f"{module}.{name}")
        return theirs

    def _of_libraries(self, module: str, name: str) -> Any:
        """maxjax's object of that name among those that libraries import from private modules."""
        ours = f"maxjax._internals{module.removeprefix('jax._src')}"
        try:
            return getattr(importlib.import_module(ours), name, None)
        except ModuleNotFoundError:
            return None


class Front(ModuleType):
    """A private module of JAX's as a test sees it."""

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._world = world
        self._theirs = world.reference.module(name)

    def __getattr__(self, name: str) -> Any:
        # A checkout's tests may ask for a tool that the installed JAX does not have yet.
        standin = self._world.standin(self.__name__, name)
        if standin is not None:
            return standin()
        caller = sys._getframe(1).f_globals.get("__name__", "")
        return self._world.counterpart(self.__name__, name, getattr(self._theirs, name), caller)


# --- tools that must know maxjax ------------------------------------------------------------------

class _KeyArrays(type):
    def __instancecheck__(cls, value: object) -> bool:
        dtype = getattr(value, "dtype", None)
        return (isinstance(value, maxjax.Array) and dtype is not None
                and maxjax.dtypes.issubdtype(dtype, maxjax.dtypes.prng_key))


class PRNGKeyArray(metaclass=_KeyArrays):
    """The arrays of keys, for ``isinstance``."""


class Backend:
    """The client of the CPU, as far as helpers ask it."""

    platform = "cpu"
    platform_version = "maxjax"
    devices = staticmethod(maxjax.devices)
    local_devices = staticmethod(maxjax.local_devices)
    device_count = staticmethod(maxjax.device_count)
    process_index = staticmethod(maxjax.process_index)

    def __call__(self, platform: object = None) -> Backend:
        """``get_backend()``."""
        return self

    def cache_clear(self) -> None:
        """Does nothing: ``get_backend`` has no cache here."""


class _MeshContext:
    """JAX's states of the mesh that is set, which a test empties when it is done."""

    def set_local(self, value: object) -> None:
        meshes.set_around(meshes.NONE_AROUND)


def _flag(name: str, default: Any, help: str = "", **_: Any) -> Any:
    """A flag of the helpers' own."""
    return config._options.get(name) or config.define_flag(name, default, help)


def _is_weakly_typed(value: Any) -> bool:
    return (type(value) in _KINDS.values()
            or bool(getattr(getattr(value, "aval", value), "weak_type", False)))


def _convert(operand: Any, new_dtype: Any = None, weak_type: bool = False, sharding: Any = None,
             **_: Any) -> Any:
    """The private conversion, which can make a result weakly typed, and place it."""
    operand = jnp.asarray(operand, device=sharding)
    if new_dtype is None:
        new_dtype = operand.dtype
    is_weak = weak_type or any(new_dtype is kind for kind in _KINDS.values())
    return convert_element_type(operand, maxjax.dtypes.canonicalize_dtype(new_dtype), is_weak)


def _given(value: Any) -> Any:
    return value


def standins(reference: Reference) -> dict[str, Callable[[], Any]]:
    """By the private module's and the object's name, what gives the object instead."""
    dtypes = reference.module("jax._src.dtypes")

    def dtype_of(value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, maxjax.Array):
            return value.dtype
        return dtypes.dtype(value, *args, **kwargs)

    def constant(example: Any, value: Any) -> Any:
        if type(example) in _KINDS.values():
            return type(example)(value)
        return np.array(value, dtype_of(example))

    def promoting(inexact: bool) -> Callable[..., list[Any]]:
        def promote(*args: Any) -> list[Any]:
            dtype = maxjax.dtypes.result_type(*args)
            if inexact:
                dtype = dtypes.to_inexact_dtype(dtype)
            return [jnp.asarray(arg).astype(dtype) for arg in args]
        return promote

    values: dict[str, Any] = {
        "config.config": config,
        "config.update": config.update,
        "config.read": config.read,
        "config._read": lambda name: config.option(name).process_value,
        "config.config_states": config._options,
        "config.abstract_mesh_context_manager": _MeshContext(),
        "config.device_context": _MeshContext(),
        "config.ExplicitX64Mode": ExplicitX64Mode,
        "config.string_flag": _flag,
        "config.int_flag": _flag,
        "config.bool_flag": _flag,
        "core.reset_trace_state": lambda: True,
        "core.trace_state_clean": lambda: True,
        "dtypes.dtype": dtype_of,
        "dtypes.is_weakly_typed": _is_weakly_typed,
        "lax.lax._convert_element_type": _convert,
        "mesh.empty_abstract_mesh": meshes.EMPTY,
        "mesh.empty_concrete_mesh": meshes.EMPTY_MESH,
        "lax.lax._const": constant,
        "numpy.util.promote_dtypes": promoting(inexact=False),
        "numpy.util.promote_dtypes_inexact": promoting(inexact=True),
        "random.prng.PRNGKeyArray": PRNGKeyArray,
        "util.install_failure_signal_handler": lambda: None,
        "xla_bridge.get_backend": Backend(),
        "xla_bridge.num_cpu_devices": config.option("jax_num_cpu_devices"),
        # Public by meaning, though not the same object.
        "shard_map.shard_map": maxjax.shard_map,
        "ad_checkpoint.saved_residuals": maxjax.ad_checkpoint.saved_residuals,
        **{f"core.{name}": getattr(maxjax, name) for name in
           ("new_ref", "freeze", "empty_ref", "Ref")},
    }
    found: dict[str, Callable[[], Any]] = {name: functools.partial(_given, value)
                                           for name, value in values.items()}
    # An array is needed to know its class.
    found["array.ArrayImpl"] = lambda: type(jnp.zeros(()))
    return found


def _share_options(reference: Reference) -> None:
    """Real private functions see what maxjax's options are set to."""
    states = reference.module("jax._src.config").config_states
    for name in SHARED_OPTIONS:
        option, state = config.option(name), states[name]

        def follow(option: Any = option, state: Any = state) -> None:
            value = option.value
            if isinstance(value, enum.Enum):
                value = type(state.value)(value.value)
            state.set_local(value)

        option.on_change.append(follow)


def enter() -> World:
    """From now on ``import jax`` gives maxjax, and ``import jax._src`` fronts.

    The parts of maxjax's classes that only JAX's tests ask for are added here.
    """
    reference = Reference()
    world = World(reference)
    _share_options(reference)
    sys.meta_path.insert(0, world)
    settings: Any = type(config)
    settings._read = lambda self, name: self.option(name).process_value
    settings.config_states = property(lambda self: self._options)
    jax: Any = importlib.import_module("jax")
    jax._src = importlib.import_module("jax._src")
    return world
