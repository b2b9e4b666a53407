"""The pytest plugin of a run of JAX's tests: enters their world (``recorder`` records them)."""

from compat import recorder
from compat.jax_tests import world

WORLD = world.enter()
WORLD.private = recorder.private
