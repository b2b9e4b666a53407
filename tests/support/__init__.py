"""What the tests share: the harness of cases, comparisons with JAX, tolerances."""
