"""Names that JAX has moved or removed: the same warnings and errors as JAX's."""

import importlib
import warnings

import pytest

MODULES = ("core", "lax", "numpy", "ad_checkpoint", "interpreters.ad", "interpreters.pxla")
# Of JAX's implementation, and deprecated without a successor.
ABSENT = {
    "lax": {"precv", "psend"},
    "interpreters.pxla": {
        "ArrayMapping", "Index", "MeshAxisName", "MeshComputation", "MeshExecutable",
        "_UNSPECIFIED", "are_hlo_shardings_equal", "array_mapping_to_axis_resources",
        "global_aval_to_result_handler", "global_avals_to_results_handler",
        "global_result_handlers", "is_hlo_sharding_replicated", "op_sharding_to_indices",
        "thread_resources"},      # the last one is there
}
NAMES = [(module, name) for module in MODULES
         for name in getattr(importlib.import_module(f"jax.{module}"), "_deprecations", ())
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


@pytest.mark.parametrize("name", ["Effects", "JaxprTypeError", "gensym", "get_aval", "is_concrete"])
def test_names_that_are_gone(name):
    assert outcome("maxjax", "core", name)[0] == outcome("jax", "core", name)[0].replace(
        "'jax.", "'maxjax.")
