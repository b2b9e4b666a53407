"""The modules of interpreters."""
