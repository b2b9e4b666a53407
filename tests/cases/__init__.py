"""The tables of cases, a module for each family of operations, and their checks against JAX."""
