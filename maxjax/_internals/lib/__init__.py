"""What JAX imports from jaxlib."""

from maxjax._internals import xla_client as xla_client
