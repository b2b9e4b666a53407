"""jax.experimental.key_reuse: random keys that are used twice are found by ``jax_debug_key_reuse``.

>>> with jax.debug_key_reuse(True):
...     key = jax.random.key(0)
...     x, y = jax.random.normal(key), jax.random.normal(key)
Traceback (most recent call last):
KeyReuseError: Previously-consumed key passed to jit-compiled function at index 0
"""

from maxjax._base.missing import explain_missing_names

explain_missing_names(__name__)
