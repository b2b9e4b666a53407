"""Accelerators, simulated: memory that is kept apart, transfers, and programs for it."""
