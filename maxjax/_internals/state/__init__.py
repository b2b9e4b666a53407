"""Mutable references, which maxjax does not have."""
