"""jax.experimental.buffer_callback: Python functions that write results into buffers."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.buffer_callback import Buffer as Buffer
from maxjax._higher_order.buffer_callback import ExecutionContext as ExecutionContext
from maxjax._higher_order.buffer_callback import ExecutionStage as ExecutionStage
from maxjax._higher_order.buffer_callback import buffer_callback as buffer_callback

explain_missing_names(__name__)
