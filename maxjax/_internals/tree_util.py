"""The registered classes of nodes."""

from maxjax._base.pytree import node_types as _registry

__all__ = ["_registry"]
