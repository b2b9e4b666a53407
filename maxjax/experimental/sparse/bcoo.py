"""BCOO: sparse arrays as lists of coordinates, with batch and dense dimensions."""

from __future__ import annotations

from maxjax.experimental.sparse._bcoo_array import BCOO as BCOO
from maxjax.experimental.sparse._bcoo_array import _bcoo_extract as _bcoo_extract
from maxjax.experimental.sparse._bcoo_array import _bcoo_fromdense as _bcoo_fromdense
from maxjax.experimental.sparse._bcoo_array import _bcoo_todense as _bcoo_todense
from maxjax.experimental.sparse._bcoo_array import bcoo_extract as bcoo_extract
from maxjax.experimental.sparse._bcoo_array import bcoo_fromdense as bcoo_fromdense
from maxjax.experimental.sparse._bcoo_array import bcoo_sort_indices as bcoo_sort_indices
from maxjax.experimental.sparse._bcoo_array import bcoo_sum_duplicates as bcoo_sum_duplicates
from maxjax.experimental.sparse._bcoo_array import bcoo_todense as bcoo_todense
from maxjax.experimental.sparse._bcoo_array import bcoo_update_layout as bcoo_update_layout
from maxjax.experimental.sparse._bcoo_buffers import BCOOProperties as BCOOProperties
from maxjax.experimental.sparse._bcoo_buffers import bcoo_extract_p as bcoo_extract_p
from maxjax.experimental.sparse._bcoo_buffers import bcoo_fromdense_p as bcoo_fromdense_p
from maxjax.experimental.sparse._bcoo_buffers import bcoo_sort_indices_p as bcoo_sort_indices_p
from maxjax.experimental.sparse._bcoo_buffers import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from maxjax.experimental.sparse._bcoo_buffers import bcoo_todense_p as bcoo_todense_p
from maxjax.experimental.sparse._bcoo_products import _bcoo_dot_general as _bcoo_dot_general
from maxjax.experimental.sparse._bcoo_products import _bcoo_rdot_general as _bcoo_rdot_general
from maxjax.experimental.sparse._bcoo_products import _bcoo_spdot_general as _bcoo_spdot_general
from maxjax.experimental.sparse._bcoo_products import (
    bcoo_conv_general_dilated as bcoo_conv_general_dilated,
)
from maxjax.experimental.sparse._bcoo_products import bcoo_dot_general as bcoo_dot_general
from maxjax.experimental.sparse._bcoo_products import bcoo_dot_general_p as bcoo_dot_general_p
from maxjax.experimental.sparse._bcoo_products import (
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
)
from maxjax.experimental.sparse._bcoo_products import (
    bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p,
)
from maxjax.experimental.sparse._bcoo_products import bcoo_multiply_dense as bcoo_multiply_dense
from maxjax.experimental.sparse._bcoo_products import bcoo_multiply_sparse as bcoo_multiply_sparse
from maxjax.experimental.sparse._bcoo_products import bcoo_spdot_general_p as bcoo_spdot_general_p
from maxjax.experimental.sparse._bcoo_shape import _bcoo_transpose as _bcoo_transpose
from maxjax.experimental.sparse._bcoo_shape import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from maxjax.experimental.sparse._bcoo_shape import bcoo_concatenate as bcoo_concatenate
from maxjax.experimental.sparse._bcoo_shape import bcoo_dynamic_slice as bcoo_dynamic_slice
from maxjax.experimental.sparse._bcoo_shape import bcoo_gather as bcoo_gather
from maxjax.experimental.sparse._bcoo_shape import bcoo_reduce_sum as bcoo_reduce_sum
from maxjax.experimental.sparse._bcoo_shape import bcoo_reshape as bcoo_reshape
from maxjax.experimental.sparse._bcoo_shape import bcoo_rev as bcoo_rev
from maxjax.experimental.sparse._bcoo_shape import bcoo_slice as bcoo_slice
from maxjax.experimental.sparse._bcoo_shape import bcoo_squeeze as bcoo_squeeze
from maxjax.experimental.sparse._bcoo_shape import bcoo_transpose as bcoo_transpose
from maxjax.experimental.sparse._bcoo_shape import bcoo_transpose_p as bcoo_transpose_p
