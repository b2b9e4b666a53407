"""jax.experimental.sparse: arrays that are mostly zeros.

BCOO is supported, and BCSR minimally; COO, CSR, CSC, and sparse primitives are not.
"""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax.experimental.sparse import _methods as _methods
from maxjax.experimental.sparse._bcoo import BCOO as BCOO
from maxjax.experimental.sparse._bcoo import JAXSparse as JAXSparse
from maxjax.experimental.sparse._bcoo import SparseEfficiencyError as SparseEfficiencyError
from maxjax.experimental.sparse._bcoo import SparseEfficiencyWarning as SparseEfficiencyWarning
from maxjax.experimental.sparse._bcoo import bcoo_extract as bcoo_extract
from maxjax.experimental.sparse._bcoo import bcoo_fromdense as bcoo_fromdense
from maxjax.experimental.sparse._bcoo import bcoo_todense as bcoo_todense
from maxjax.experimental.sparse._bcsr import BCSR as BCSR
from maxjax.experimental.sparse._bcsr import bcsr_fromdense as bcsr_fromdense
from maxjax.experimental.sparse._bcsr import bcsr_todense as bcsr_todense
from maxjax.experimental.sparse._creation import empty as empty
from maxjax.experimental.sparse._creation import eye as eye
from maxjax.experimental.sparse._creation import random_bcoo as random_bcoo
from maxjax.experimental.sparse._creation import todense as todense
from maxjax.experimental.sparse._ops import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from maxjax.experimental.sparse._ops import bcoo_concatenate as bcoo_concatenate
from maxjax.experimental.sparse._ops import bcoo_dot_general as bcoo_dot_general
from maxjax.experimental.sparse._ops import bcoo_multiply_dense as bcoo_multiply_dense
from maxjax.experimental.sparse._ops import bcoo_multiply_sparse as bcoo_multiply_sparse
from maxjax.experimental.sparse._ops import bcoo_reduce_sum as bcoo_reduce_sum
from maxjax.experimental.sparse._ops import bcoo_reshape as bcoo_reshape
from maxjax.experimental.sparse._ops import bcoo_rev as bcoo_rev
from maxjax.experimental.sparse._ops import bcoo_slice as bcoo_slice
from maxjax.experimental.sparse._ops import bcoo_sort_indices as bcoo_sort_indices
from maxjax.experimental.sparse._ops import bcoo_squeeze as bcoo_squeeze
from maxjax.experimental.sparse._ops import bcoo_sum_duplicates as bcoo_sum_duplicates
from maxjax.experimental.sparse._ops import bcoo_transpose as bcoo_transpose
from maxjax.experimental.sparse._ops import bcoo_update_layout as bcoo_update_layout
from maxjax.experimental.sparse._transforms import grad as grad
from maxjax.experimental.sparse._transforms import jacfwd as jacfwd
from maxjax.experimental.sparse._transforms import jacobian as jacobian
from maxjax.experimental.sparse._transforms import jacrev as jacrev
from maxjax.experimental.sparse._transforms import sparsify as sparsify
from maxjax.experimental.sparse._transforms import value_and_grad as value_and_grad

explain_missing_names(__name__)
