"""jax.lax: the operations closest to the primitives; they validate but do not promote."""

from maxjax._higher_order.function_stages import add_stages as _add_stages
from maxjax.lax import linalg as linalg
from maxjax.lax._barriers import *  # noqa: F403
from maxjax.lax._collectives import *  # noqa: F403
from maxjax.lax._contraction import *  # noqa: F403
from maxjax.lax._control import *  # noqa: F403
from maxjax.lax._conversion import *  # noqa: F403
from maxjax.lax._elementwise import *  # noqa: F403
from maxjax.lax._fft import *  # noqa: F403
from maxjax.lax._generators import *  # noqa: F403
from maxjax.lax._indexing import *  # noqa: F403
from maxjax.lax._permutations import *  # noqa: F403
from maxjax.lax._polynomials import *  # noqa: F403
from maxjax.lax._reduce_window import *  # noqa: F403
from maxjax.lax._reductions import *  # noqa: F403
from maxjax.lax._selection import *  # noqa: F403
from maxjax.lax._shape import *  # noqa: F403
from maxjax.lax._sorting import *  # noqa: F403
from maxjax.lax._special_functions import *  # noqa: F403
from maxjax.lax._window import *  # noqa: F403

_add_stages(globals(), "dynamic_index_in_dim dynamic_update_index_in_dim fft")
