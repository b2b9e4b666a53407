"""Masks of attention kernels for TPUs: libraries import them, and use them on TPUs alone."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names

explain_missing_names(__name__, {name: (
    f"splash attention's {name!r} is for TPUs, which maxjax does not run on; "
    "jax.nn.dot_product_attention takes masks") for name in (
    "CausalMask", "ChunkedCausalMask", "FullMask", "LocalMask", "LogicalAnd", "LogicalOr", "Mask",
    "MultiHeadMask", "NumpyMask", "make_causal_mask", "make_local_attention_mask",
    "make_random_mask")})
