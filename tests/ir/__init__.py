"""Jaxprs: how they print, what their values tell while traced, sizes that are not known."""
