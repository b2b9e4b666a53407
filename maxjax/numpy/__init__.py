"""jax.numpy: NumPy's functions on maxjax arrays, with JAX's dtypes."""

from maxjax._base.missing import explain_missing_names as _explain_missing_names
from maxjax._higher_order.function_stages import add_stages as _add_stages
from maxjax._higher_order.function_stages import note_jitted as _note_jitted
from maxjax._higher_order.function_stages import refuse_unhashable as _refuse_unhashable
from maxjax._ir.trace import Array as ndarray
from maxjax.numpy import _array_members as _array_members
from maxjax.numpy import _array_methods as _array_methods
from maxjax.numpy import fft as fft
from maxjax.numpy import linalg as linalg
from maxjax.numpy._arg_reductions import *
from maxjax.numpy._complex import *
from maxjax.numpy._contraction import *
from maxjax.numpy._covariance import *
from maxjax.numpy._creation import *
from maxjax.numpy._cumulative import *
from maxjax.numpy._division import *
from maxjax.numpy._einsum import *
from maxjax.numpy._filled import *
from maxjax.numpy._flat_indices import *
from maxjax.numpy._float_parts import *
from maxjax.numpy._grids import *
from maxjax.numpy._histograms import *
from maxjax.numpy._hypot import *
from maxjax.numpy._imported import *
from maxjax.numpy._indexing import *
from maxjax.numpy._insertion import *
from maxjax.numpy._joining import *
from maxjax.numpy._logic import *
from maxjax.numpy._matrices import *
from maxjax.numpy._moments import *
from maxjax.numpy._namespace_info import __array_api_version__ as __array_api_version__
from maxjax.numpy._namespace_info import __array_namespace_info__ as __array_namespace_info__
from maxjax.numpy._nan_reductions import *
from maxjax.numpy._nonzero import *
from maxjax.numpy._padding import *
from maxjax.numpy._polynomials import *
from maxjax.numpy._printing import *
from maxjax.numpy._put import *
from maxjax.numpy._quantiles import *
from maxjax.numpy._ranges import *
from maxjax.numpy._reductions import *
from maxjax.numpy._repeating import *
from maxjax.numpy._rounding import *
from maxjax.numpy._scalar_types import *
from maxjax.numpy._sets import *
from maxjax.numpy._shape import *
from maxjax.numpy._signal import *
from maxjax.numpy._sorting import *
from maxjax.numpy._special_functions import *
from maxjax.numpy._special_values import *
from maxjax.numpy._ufunc_objects import *
from maxjax.numpy._ufuncs import *
from maxjax.numpy._unique import *
from maxjax.numpy._where import *

_explain_missing_names(__name__)

_add_stages(globals(), """
    abs absolute acos acosh allclose angle append arccos arccosh arcsin arcsinh arctan arctan2
    arctanh argpartition argsort around asin asinh atan atan2 atanh atleast_1d atleast_2d
    atleast_3d bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_right_shift
    block cbrt ceil clip conjugate convolve copysign corrcoef correlate cos cosh count_nonzero
    cov cross cumprod cumsum deg2rad diagonal diff digitize divmod dot ediff1d equal exp exp2
    expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd gradient greater
    greater_equal heaviside hypot i0 imag inner invert isclose iscomplex isfinite isinf isnan
    isreal kron lcm ldexp left_shift less less_equal lexsort log log10 log1p log2 logical_not
    matmul matvec median modf nan_to_num nancumprod nancumsum nanmax nanmean nanmedian nanmin
    nanpercentile nanprod nanquantile nanstd nansum nanvar nextafter not_equal outer packbits
    partition percentile poly polyadd polyder polyfit polyint polysub polyval positive
    put_along_axis quantile rad2deg ravel real reciprocal remainder resize right_shift rint
    rollaxis rot90 round searchsorted sign signbit sin sinc sinh sort sort_complex spacing sqrt
    square swapaxes take_along_axis tan tanh top_k trace trapezoid tril triu true_divide trunc
    unpackbits unstack unwrap vander vdot vecmat
""")

_note_jitted(globals(), """
    add all any average bitwise_and bitwise_or bitwise_xor geomspace interp linspace logaddexp
    logaddexp2 logical_and logical_or logical_xor logspace max maximum mean min minimum multiply
    negative prod subtract sum take
""")

_refuse_unhashable(globals(), "all any ptp", "keepdims")
_refuse_unhashable(globals(), "mean std var", "dtype", "keepdims")
_refuse_unhashable(globals(), "average", "returned", "keepdims")
_refuse_unhashable(globals(), "linspace", "endpoint", "retstep", "dtype", "device")
_refuse_unhashable(globals(), "geomspace logspace", "endpoint", "dtype")
_refuse_unhashable(globals(), "take", "mode", "unique_indices", "indices_are_sorted", "fill_value")
_refuse_unhashable(globals(), "isin", "assume_unique", "invert", "method")
_refuse_unhashable(globals(), "intersect1d", "return_indices", "size")
_refuse_unhashable(globals(), "setdiff1d", "assume_unique")
_refuse_unhashable(globals(), "unique", "equal_nan")
_refuse_unhashable(globals(), "vecdot", "precision", "preferred_element_type")
_refuse_unhashable(globals(), "einsum", "precision", "preferred_element_type", "_dot_general")

_array_methods.install(globals())
