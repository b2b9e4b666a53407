"""Expressions with what JAX gives for each, a file for each subject; outcomes.py has the format."""
