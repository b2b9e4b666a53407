"""maxjax against JAX: the same programs on both, in turns. `python -m benchmarks` runs them."""
