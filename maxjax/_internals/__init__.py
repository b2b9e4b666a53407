"""The names that popular libraries import from JAX's private modules, and nothing more.

``python -m maxjax`` substitutes these modules when a script's libraries import ``jax._src``. Each
contains the names that Equinox, Flax, Haiku, Chex and similar libraries use, implemented by maxjax.
"""

# JAX has imported these by the time that a library looks at ``jax._src.distributed``.
from maxjax._internals import compiler as compiler
from maxjax._internals import core as core
from maxjax._internals import distributed as distributed
from maxjax._internals import pjit as pjit
from maxjax._internals import tree_util as tree_util
from maxjax._internals import xla_bridge as xla_bridge
