"""Platforms by name: none is XLA's."""

_backends: dict[str, object] = {}
