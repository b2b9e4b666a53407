"""``python -m compat``: see README.md."""

from compat.run import main

raise SystemExit(main())
