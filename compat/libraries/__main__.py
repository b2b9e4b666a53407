"""``python -m compat.libraries``: see compat/README.md."""

from compat.libraries.run import main

raise SystemExit(main())
