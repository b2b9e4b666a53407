"""``python -m compat.release``: see run.py."""

from compat.release.run import main

raise SystemExit(main())
