"""Attention kernels for TPUs: libraries import them, and call them on TPUs alone."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names

explain_missing_names(__name__, {name: (
    f"splash attention's {name!r} is for TPUs, which maxjax does not run on; "
    "jax.nn.dot_product_attention computes attention") for name in (
    "BlockSizes", "QKVLayout", "SegmentIds", "SplashAttentionKernel", "make_splash_mha",
    "make_splash_mha_single_device", "make_splash_mqa", "make_splash_mqa_single_device")})
