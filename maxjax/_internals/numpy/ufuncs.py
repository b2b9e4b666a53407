"""The class of universal functions."""

from maxjax.numpy import ufunc as ufunc
