"""Chex imports this module to forbid compilations; maxjax's compiles are not XLA's."""
