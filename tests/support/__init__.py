"""Shared by the tests: the harness of cases, comparisons with JAX, tolerances."""
