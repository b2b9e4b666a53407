"""jax.stages: functions traced, lowered and compiled ahead of time."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.stages import ArgInfo as ArgInfo
from maxjax._higher_order.stages import Compiled as Compiled
from maxjax._higher_order.stages import Lowered as Lowered
from maxjax._higher_order.stages import Traced as Traced

explain_missing_names(__name__)
