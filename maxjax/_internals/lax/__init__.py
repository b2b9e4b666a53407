"""The modules of lax."""
