"""Jaxprs: printing, access to values while tracing, unknown sizes."""
