"""The primitive of calls of jitted functions."""

from maxjax.extend.core.primitives import jit_p as jit_p
