"""A symbolic size as a value: what arithmetic of arrays with sizes is staged as."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import COUNT, FLAG, NUMBER_DTYPE, takes
from maxjax._ir.dimensions import Dimension
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Host, Values
from maxjax._ir.size_scopes import state
from maxjax._ir.types import ShapedArray
from maxjax._primitives.rules import replicated_factors

# Occurs only in programs whose sizes are open: with sizes it becomes a literal.
dimension_size_p = Primitive(
    "dimension_size",
    contract=takes(0, size=COUNT, dtype=NUMBER_DTYPE, weak=FLAG),
    values=Values(known=lambda params: params["size"]),
    abstract=lambda *, size, dtype, weak: ShapedArray((), dtype, weak),
    evaluate=lambda *, size, dtype, weak: np.asarray(size, dtype)[()],
    host=Host(reason="it is no part of a program whose sizes are known"),
    derivative=Derivative(missing="it has no operands"),
    factors=replicated_factors,
)


def dimension_scalar(size: Dimension, dtype: np.dtype, weak: bool) -> Any:
    """A size as a scalar array; of Python's own integer type if the dtype is None."""
    dtype = dtypes.python_scalar(int)[0] if dtype is None else dtype
    return dimension_size_p.bind(size=size, dtype=dtype, weak=weak)


state.as_scalar = dimension_scalar
