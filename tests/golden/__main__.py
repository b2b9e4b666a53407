"""``python -m tests.golden``: writes the golden texts anew; read the difference."""

import os
import sys

os.environ.setdefault("MAXJAX_COMPILE", "never")

from tests.golden import jaxprs, kernels, partitions  # noqa: F401 (they have the programs)
from tests.golden.programs import GOLDENS

for name in sys.argv[1:] or GOLDENS:
    GOLDENS[name].path.write_text(GOLDENS[name].text(), encoding="utf-8")
