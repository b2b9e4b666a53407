"""jax.ad: the argument and result types of ``with_refs`` on functions returned by ``vjp``."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._transforms.linear_functions import DidntWant as DidntWant
from maxjax._transforms.linear_functions import DontWant as DontWant
from maxjax._transforms.linear_functions import GradRef as GradRef
from maxjax._transforms.linear_functions import GradValue as GradValue

explain_missing_names(__name__)
