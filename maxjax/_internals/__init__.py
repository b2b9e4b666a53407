"""The names that popular libraries import from JAX's private modules, and nothing more.

``python -m maxjax`` substitutes these modules when a script's libraries import ``jax._src``. Each
contains the names that Equinox, Flax, Haiku, Chex and similar libraries use, implemented by maxjax.
"""

from maxjax._base.lazy import import_named_modules

import_named_modules(__name__)
