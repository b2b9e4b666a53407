"""maxjax held against real JAX: the surface, the cases, the matrix (see README.md)."""

import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MAXJAX_COMPILE", "never")      # tier 1 is run by compat/compiled.py
ROOT = Path(__file__).parent.parent
