"""jax.lib: the version of jaxlib that maxjax follows."""

from maxjax._base.missing import explain_missing_names
from maxjax.version import JAX_VERSION as __version__

explain_missing_names(__name__)
