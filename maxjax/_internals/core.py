"""Types of values."""

from maxjax._ir.types import ShapedArray as ShapedArray
