"""jax.experimental.roofline: what a program computes and moves, counted on its jaxpr."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax.experimental.roofline import rooflines as rooflines
from maxjax.experimental.roofline.roofline import RooflineResult as RooflineResult
from maxjax.experimental.roofline.roofline import RooflineRuleContext as RooflineRuleContext
from maxjax.experimental.roofline.roofline import RooflineShape as RooflineShape
from maxjax.experimental.roofline.roofline import register_roofline as register_roofline
from maxjax.experimental.roofline.roofline import (
    register_standard_roofline as register_standard_roofline,
)
from maxjax.experimental.roofline.roofline import roofline as roofline
from maxjax.experimental.roofline.roofline import roofline_and_grad as roofline_and_grad

explain_missing_names(__name__)
