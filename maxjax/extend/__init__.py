"""jax.extend: for libraries that use maxjax's internals."""

from maxjax._base.missing import explain_missing_names
from maxjax.extend import backend as backend
from maxjax.extend import core as core
from maxjax.extend import linear_util as linear_util
from maxjax.extend import mojo as mojo
from maxjax.extend import random as random
from maxjax.extend import source_info_util as source_info_util

# JAX's names that are not supported, with the reason.
_ABSENT = {
    "ifrt_programs": "maxjax's programs do not run on IFRT",
    "lowering": "maxjax lowers to Mojo, not to MLIR; see maxjax.extend.mojo",
    "mlir": "maxjax lowers to Mojo, not to MLIR; see maxjax.extend.mojo",
    "pallas": "maxjax has no Pallas; kernels are written in Mojo, see maxjax.extend.mojo",
    "sharding": "maxjax has no shardings in XLA's formats",
    "xla": "maxjax's programs do not run on XLA",
}

explain_missing_names(__name__, {
    name: f"module {__name__!r} has no attribute {name!r}: {reason}"
    for name, reason in _ABSENT.items()})
