"""The functions of two generators, which a pickle of keys names and nothing calls."""

_rbg_seed = _rbg_split = _rbg_random_bits = _rbg_fold_in = "rbg"
_unsafe_rbg_split = _unsafe_rbg_fold_in = "unsafe_rbg"
