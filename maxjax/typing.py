"""jax.typing: names for annotations of arrays and of what becomes one."""

from maxjax._ir.trace import Array as Array
from maxjax._ir.typing import ArrayLike as ArrayLike
from maxjax._ir.typing import DTypeLike as DTypeLike
from maxjax._ir.typing import SupportsDType as SupportsDType
