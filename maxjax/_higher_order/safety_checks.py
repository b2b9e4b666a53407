"""Checks that calls of exported functions make, or leave out."""

from __future__ import annotations


class DisabledSafetyCheck:
    """A check that is left out when an exported function is called.

    >>> jax.export.DisabledSafetyCheck.platform()
    platform
    """

    def __init__(self, _impl: str):
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """That the platform is one of those exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """That a custom call is known to be stable; maxjax's programs have none."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the custom call, if the check is about one."""
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)

    def __repr__(self) -> str:
        return self._impl
