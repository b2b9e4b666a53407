"""The class of concrete arrays of dtypes that libraries define: maxjax has one class for all."""

from maxjax._runtime.array import ArrayImpl as EArray

__all__ = ["EArray"]
