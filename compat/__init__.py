"""maxjax held against real JAX: the surface, the cases, the matrix (see README.md)."""

import os
import re
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MAXJAX_COMPILE", "never")      # tier 1 is run by compat/compiled.py
ROOT = Path(__file__).parent.parent


def followed() -> str:
    """The release of JAX that maxjax follows."""
    text = (ROOT / "maxjax" / "version.py").read_text()
    found = re.search(r'JAX_VERSION = "(.*)"', text)
    assert found is not None
    return found[1]
