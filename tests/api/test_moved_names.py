"""Names that JAX has moved or removed: the same warnings and errors as JAX's."""

import importlib
import warnings

import jax
import jax.export
import pytest

import maxjax
import maxjax.core
import maxjax.export

MODULES = ("", ".core", ".lax", ".interpreters.pxla", ".scipy.special", ".experimental.pjit",
           ".experimental.shard_map")
# Of JAX's implementation, and deprecated without a successor.
ABSENT = {
    ".lax": {"precv", "psend"},      # between devices, nowhere on JAX's CPU backend
    ".interpreters.pxla": {"MeshComputation", "global_avals_to_results_handler"},
}
# What JAX had deprecated in releases before, and has no more.
GONE = {
    ".core": ("DebugInfo", "DropVar", "Effects", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal",
              "Var", "check_jaxpr", "concrete_or_error", "find_top_trace", "gensym", "get_aval",
              "is_concrete", "is_constant_dim", "mapped_aval", "new_jaxpr_eqn", "valid_jaxtype",
              "unsafe_am_i_under_a_jit_DO_NOT_USE"),
    ".lax": ("pvary",), ".numpy": ("fix",), ".ad_checkpoint": ("checkpoint", "remat"),
    ".interpreters.ad": ("reducing_transposes",), ".interpreters.batching": ("NotMapped",),
    ".interpreters.pxla": ("MapTracer", "ShardingSpec", "shard_args", "spec_to_indices"),
    ".scipy.special": ("sph_harm",),
}
NAMES = [(module, name) for module in MODULES
         for name in importlib.import_module(f"jax{module}")._deprecations
         if name not in ABSENT.get(module, ())]
NAMES += [(module, name) for module, names in GONE.items() for name in names]


def outcome(library, path, name):
    module = importlib.import_module(library + path)
    vars(module).pop(name, None)        # whoever asks first is warned
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            getattr(module, name)
            error = None
        except AttributeError as raised:
            error = str(raised).replace(repr(module.__name__), repr(path))
    return error, [(x.category, str(x.message)) for x in caught]


@pytest.mark.parametrize("module, name", NAMES)
def test_as_in_jax(module, name):
    assert outcome("maxjax", module, name) == outcome("jax", module, name)


def test_what_is_concrete():
    def told(j):
        symbol, = j.export.symbolic_shape("a")
        seen = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            core = importlib.import_module(
                "jax._src.core" if j is jax else "maxjax._internals.core")
            j.jit(lambda x: seen.append(core.is_concrete(x)) or x)(1.0)
            return [*seen, core.is_concrete(j.numpy.ones(2)), core.is_concrete(3.0),
                    core.is_constant_dim(3), core.is_constant_dim(symbol),
                    core.is_constant_shape((2, symbol)), core.is_constant_shape((2,))]

    assert told(maxjax) == told(jax)
