"""What pickles of random keys that JAX wrote name."""

from maxjax._base.lazy import import_named_modules

import_named_modules(__name__)
