"""jax.lax: the operations closest to the primitives; they validate but do not promote."""

from maxjax._higher_order.function_stages import add_stages as _add_stages
from maxjax.lax import linalg as linalg
from maxjax.lax._barriers import *
from maxjax.lax._broadcasting import *
from maxjax.lax._collectives import *
from maxjax.lax._contraction import *
from maxjax.lax._control import *
from maxjax.lax._conversion import *
from maxjax.lax._elementwise import *
from maxjax.lax._exchanges import *
from maxjax.lax._fft import *
from maxjax.lax._gather_scatter import *
from maxjax.lax._generators import *
from maxjax.lax._joining import *
from maxjax.lax._mapped_axes import *
from maxjax.lax._permutations import *
from maxjax.lax._polynomials import *
from maxjax.lax._reduce_window import *
from maxjax.lax._reductions import *
from maxjax.lax._selection import *
from maxjax.lax._shape import *
from maxjax.lax._slicing import *
from maxjax.lax._sorting import *
from maxjax.lax._special_functions import *
from maxjax.lax._window import *

_add_stages(globals(), "dynamic_index_in_dim dynamic_update_index_in_dim fft")
