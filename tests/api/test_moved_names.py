"""Names that JAX has moved or removed: the same warnings and errors as JAX's."""

import importlib
import warnings

import jax
import jax.export
import pytest

import maxjax
import maxjax.core
import maxjax.export

MODULES = ("core", "lax", "numpy", "ad_checkpoint", "interpreters.ad", "interpreters.pxla")
# Of JAX's implementation, and deprecated without a successor.
ABSENT = {
    "core": {"CallPrimitive", "JaxprPpContext", "JaxprPpSettings", "OutputType", "abstract_token",
             "aval_mapping_handlers", "call", "concretization_function_error", "custom_typechecks",
             "literalable_types", "no_axis_name", "trace_ctx"},
    "interpreters.pxla": {
        "ArrayMapping", "Index", "MeshAxisName", "MeshComputation", "MeshExecutable",
        "_UNSPECIFIED", "are_hlo_shardings_equal", "array_mapping_to_axis_resources",
        "global_aval_to_result_handler", "global_avals_to_results_handler",
        "global_result_handlers", "is_hlo_sharding_replicated", "op_sharding_to_indices",
        "thread_resources"},      # the last one is there
}
NAMES = [(module, name) for module in MODULES
         for name in importlib.import_module(f"jax.{module}")._deprecations
         if name not in ABSENT.get(module, ())]


def outcome(library, path, name):
    module = importlib.import_module(f"{library}.{path}")
    vars(module).pop(name, None)        # whoever asks first is warned
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            getattr(module, name)
            error = None
        except AttributeError as raised:
            error = str(raised)
    return error, [(x.category, str(x.message)) for x in caught]


@pytest.mark.parametrize("module, name", NAMES)
def test_as_in_jax(module, name):
    assert outcome("maxjax", module, name) == outcome("jax", module, name)


def test_a_moved_name_is_the_other_modules():
    with pytest.warns(DeprecationWarning, match=r"Use jax\.extend\.core\.Effects"):
        vars(maxjax.core).pop("Effects", None)
        assert maxjax.core.Effects is importlib.import_module("maxjax.extend.core").Effects


def test_what_is_concrete():
    def told(j):
        symbol, = j.export.symbolic_shape("a")
        seen = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            core = j.core
            j.jit(lambda x: seen.append(core.is_concrete(x)) or x)(1.0)
            return [*seen, core.is_concrete(j.numpy.ones(2)), core.is_concrete(3.0),
                    core.is_constant_dim(3), core.is_constant_dim(symbol),
                    core.is_constant_shape((2, symbol)), core.is_constant_shape((2,))]

    assert told(maxjax) == told(jax)
