"""Convolutions of every kind."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)
LAYOUTS = (("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("CNHW", "IHWO", "WNCH"))


def array(*shape, dtype=np.float32):
    return np.asarray(RNG.normal(size=shape) * 2, dtype)


def of(strides=(1, 1), padding="SAME", **options):
    return lambda j, x, w: j.lax.conv_general_dilated(x, w, strides, padding, **options)


def drawn(number):
    """A convolution with random sizes and parameters: (function, lhs, rhs)."""
    rng = np.random.default_rng(number)
    layout = LAYOUTS[number % 3]
    groups = int(rng.choice([1, 1, 2, 3]))
    batch_groups = 2 if groups == 1 and rng.random() < 0.3 else 1
    batch, features, outputs = (int(rng.choice([1, 2, 3, 17])) for _ in range(3))
    height, width = rng.integers(3, 8, 2).tolist()
    window = rng.integers(1, 4, 2).tolist()
    strides, holes, window_holes = (
        tuple(rng.choice([1, 1, 2], 2).tolist()) for _ in range(3))
    # XLA's gradients of grouped convolutions are wrong where padding exceeds the window.
    padding = tuple((int(low), int(high)) for low, high in (
        rng.integers(0, (k - 1) * d + 1, 2) for k, d in zip(window, window_holes, strict=True)))
    sizes = {"N": batch * batch_groups, "C": features * groups, "H": height, "W": width}
    weights = {"O": outputs * groups * batch_groups, "I": features, "H": window[0],
               "W": window[1]}
    fun = of(strides, padding, lhs_dilation=holes, rhs_dilation=window_holes,
             dimension_numbers=layout, feature_group_count=groups,
             batch_group_count=batch_groups)
    return (fun, np.asarray(rng.normal(size=[sizes[c] for c in layout[0]]), np.float32),
            np.asarray(rng.normal(size=[weights[c] for c in layout[1]]), np.float32))


IMAGE, WINDOW = array(2, 3, 6, 7), array(4, 3, 3, 2)
CASES = [
    *(Case(f"drawn-{number}", fun, (x, w), tolerance="accumulate")
      for number in range(24) for fun, x, w in [drawn(number)]),
    Case("same", of(), (IMAGE, WINDOW), tolerance="accumulate"),
    Case("same-lower", of((2, 1), "SAME_LOWER"), (IMAGE, WINDOW), tolerance="accumulate"),
    Case("valid-strides", of((2, 3), "VALID"), (IMAGE, WINDOW), tolerance="accumulate"),
    Case("crop", of((1, 1), ((-1, 1), (2, -2))), (IMAGE, WINDOW), tolerance="accumulate"),
    Case("depthwise", of(feature_group_count=3), (IMAGE, array(6, 1, 3, 3)),
         tolerance="accumulate"),
    Case("batch-last", of(dimension_numbers=LAYOUTS[1]), (array(40, 5, 4, 2), array(3, 3, 2, 3)),
         tolerance="accumulate"),
    Case("channels-last", of(dimension_numbers=LAYOUTS[1]), (
        array(2, 5, 4, 16), array(3, 3, 16, 3)), tolerance="accumulate"),
    Case("many-windows", of(dimension_numbers=LAYOUTS[1]), (
        array(2, 24, 24, 8) / 8, array(3, 3, 8, 4) / 8), tolerance="accumulate"),
    *(Case(f"holes-{size}-{holes}", of((1, 1), ((1, 2), (0, 3)), lhs_dilation=(holes, 2),
                                       feature_group_count=groups),
           (array(2, 4, 5, 3), array(6, 4 // groups, size, size)), tolerance="accumulate")
      for size, holes, groups in ((1, 2, 1), (3, 3, 2), (4, 1, 1))),
    Case("pointwise", of(dimension_numbers=LAYOUTS[1]), (array(2, 3, 4, 5), array(1, 1, 5, 6)),
         tolerance="accumulate"),
    Case("1d", of((2,), ((1, 1),)), (array(2, 3, 9), array(4, 3, 3)), tolerance="accumulate"),
    Case("3d", of((2, 1, 1), ((1, 1), (0, 1), (0, 0))), (
        array(2, 2, 4, 5, 4), array(3, 2, 3, 2, 1)), tolerance="accumulate"),
    Case("0d", of((), ()), (array(2, 3), array(4, 3)), tolerance="accumulate"),
    Case("empty-batch", of(), (IMAGE[:0], WINDOW), tolerance="accumulate", differentiable=False),
    Case("empty-result", of((1, 1), "VALID"), (IMAGE, array(4, 3, 9, 9)), differentiable=False),
    *(Case(f"dtype-{np.dtype(dtype).name}", of(), (
        array(2, 3, 5, 5, dtype=dtype), array(4, 3, 3, 3, dtype=dtype)), differentiable=False,
        tolerance="accumulate")
      for dtype in (np.int8, np.int32, np.float16, ml_dtypes.bfloat16, np.complex64)),
    Case("bool", of(), (IMAGE > 1, WINDOW > 1), differentiable=False, tolerance="exact"),
    Case("preferred", of(preferred_element_type=np.float32), (
        IMAGE.astype(ml_dtypes.bfloat16), WINDOW.astype(ml_dtypes.bfloat16)), smooth=False,
        tolerance="accumulate"),
    Case("conv", lambda j, x, w: j.lax.conv(x, w, (1, 2), "SAME"), (IMAGE, WINDOW),
         tolerance="accumulate"),
    Case("conv_with_general_padding", lambda j, x, w: j.lax.conv_with_general_padding(
        x, w, (1, 1), ((1, 0), (0, 1)), (1, 2), (2, 1)), (IMAGE, WINDOW), tolerance="accumulate"),
    *(Case(f"conv_transpose-{name}", lambda j, x, w, strides=strides, padding=padding, options=(
        options): j.lax.conv_transpose(x, w, strides, padding, **options), (
            array(2, 5, 4, 3), array(3, 2, 3, 4) if not options.get("transpose_kernel") else array(
                3, 2, 4, 3)), tolerance="accumulate")
      for name, strides, padding, options in (
          ("same", (2, 2), "SAME", {}), ("valid", (3, 1), "VALID", {}),
          ("pads", (2, 2), ((1, 1), (0, 1)), {}), ("kernel", (2, 2), "SAME",
                                                   {"transpose_kernel": True}),
          ("dilated", (1, 2), "VALID", {"rhs_dilation": (2, 1)}),
          ("consistent", (2, 2), ((1, 1), (0, 1)), {"use_consistent_padding": True}))),
    Case("patches", lambda j, x: j.lax.conv_general_dilated_patches(
        x, (2, 3), (1, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NHWC")), (IMAGE,),
        tolerance="accumulate"),
]

ERRORS = {
    "strides": lambda l: l.conv(IMAGE, WINDOW, (1,), "SAME"),
    "features": lambda l: l.conv(IMAGE, WINDOW[:, :2], (1, 1), "SAME"),
    "rank": lambda l: l.conv(IMAGE, WINDOW[0], (1, 1), "SAME"),
    "dtypes": lambda l: l.conv(IMAGE.astype(np.int32), WINDOW, (1, 1), "SAME"),
    "padding": lambda l: l.conv(IMAGE, WINDOW, (1, 1), "FOO"),
    "groups": lambda l: l.conv_general_dilated(
        IMAGE, WINDOW, (1, 1), "SAME", feature_group_count=2),
    "groups-none": lambda l: l.conv_general_dilated(
        IMAGE, WINDOW, (1, 1), "SAME", feature_group_count=0),
    "batch-groups": lambda l: l.conv_general_dilated(
        IMAGE, WINDOW, (1, 1), "SAME", batch_group_count=3),
    "numbers-repeated": lambda l: l.conv_general_dilated(
        IMAGE, WINDOW, (1, 1), "SAME", dimension_numbers=("NHHC", "HWIO", "NHWC")),
    "numbers-length": lambda l: l.conv_general_dilated(
        IMAGE, WINDOW, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO")),
    "pads": lambda l: l.conv_general_dilated(IMAGE, WINDOW, (1, 1), [(1, 1)]),
    "transposed-same": lambda l: l.conv_general_dilated(
        IMAGE, WINDOW, (1, 1), "SAME", lhs_dilation=(2, 2)),
}
CASES += [Case(f"error-{label}", lambda j, fun=fun: fun(j.lax), (), raises=True)
          for label, fun in ERRORS.items()]
