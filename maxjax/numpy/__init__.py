"""jax.numpy: NumPy's functions on maxjax arrays, with JAX's dtypes."""

from maxjax._base.missing import explain_missing_names as _explain_missing_names
from maxjax._ir.trace import Array as ndarray
from maxjax.numpy import _array_members as _array_members
from maxjax.numpy import _array_methods as _array_methods
from maxjax.numpy import fft as fft
from maxjax.numpy import linalg as linalg
from maxjax.numpy._contraction import *  # noqa: F403
from maxjax.numpy._creation import *  # noqa: F403
from maxjax.numpy._cumulative import *  # noqa: F403
from maxjax.numpy._division import *  # noqa: F403
from maxjax.numpy._float_parts import *  # noqa: F403
from maxjax.numpy._grids import *  # noqa: F403
from maxjax.numpy._imported import *  # noqa: F403
from maxjax.numpy._indexing import *  # noqa: F403
from maxjax.numpy._joining import *  # noqa: F403
from maxjax.numpy._logic import *  # noqa: F403
from maxjax.numpy._matrices import *  # noqa: F403
from maxjax.numpy._namespace_info import __array_api_version__ as __array_api_version__
from maxjax.numpy._namespace_info import __array_namespace_info__ as __array_namespace_info__
from maxjax.numpy._nan_reductions import *  # noqa: F403
from maxjax.numpy._padding import *  # noqa: F403
from maxjax.numpy._polynomials import *  # noqa: F403
from maxjax.numpy._printing import *  # noqa: F403
from maxjax.numpy._ranges import *  # noqa: F403
from maxjax.numpy._reductions import *  # noqa: F403
from maxjax.numpy._rounding import *  # noqa: F403
from maxjax.numpy._scalar_types import *  # noqa: F403
from maxjax.numpy._sets import *  # noqa: F403
from maxjax.numpy._shape import *  # noqa: F403
from maxjax.numpy._signal import *  # noqa: F403
from maxjax.numpy._sorting import *  # noqa: F403
from maxjax.numpy._statistics import *  # noqa: F403
from maxjax.numpy._ufunc_objects import *  # noqa: F403
from maxjax.numpy._ufuncs import *  # noqa: F403
from maxjax.numpy._where import *  # noqa: F403

_explain_missing_names(__name__, {
    "fix": "jax.numpy.fix was removed from JAX: use jax.numpy.trunc."})
