"""jax.stages: functions traced, lowered and compiled ahead of time."""

from __future__ import annotations

from maxjax._base.missing import missing_names
from maxjax._higher_order.stages import ArgInfo as ArgInfo
from maxjax._higher_order.stages import Compiled as Compiled
from maxjax._higher_order.stages import Lowered as Lowered
from maxjax._higher_order.stages import Traced as Traced

__getattr__ = missing_names(__name__)
