"""The type of references."""

from maxjax._ir.refs import AbstractRef as AbstractRef

__all__ = ["AbstractRef"]
