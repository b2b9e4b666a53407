"""``python -m compat.jax_tests``: see compat/README.md."""

from compat.jax_tests.run import main

raise SystemExit(main())
