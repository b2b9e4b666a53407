"""jax.experimental.sparse: arrays that are mostly zeros.

BCOO and BCSR have batch and dense dimensions and go through ``jit``, ``vmap`` and derivatives; COO,
CSR and CSC are simple matrices. ``sparsify`` turns functions of dense arrays into such of sparse
ones.
"""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax.experimental.sparse import _sparsify_rules as _sparsify_rules  # sparsify finds them
from maxjax.experimental.sparse import linalg as linalg
from maxjax.experimental.sparse._base import JAXSparse as JAXSparse
from maxjax.experimental.sparse.ad import grad as grad
from maxjax.experimental.sparse.ad import jacfwd as jacfwd
from maxjax.experimental.sparse.ad import jacobian as jacobian
from maxjax.experimental.sparse.ad import jacrev as jacrev
from maxjax.experimental.sparse.ad import value_and_grad as value_and_grad
from maxjax.experimental.sparse.api import empty as empty
from maxjax.experimental.sparse.api import eye as eye
from maxjax.experimental.sparse.api import todense as todense
from maxjax.experimental.sparse.api import todense_p as todense_p
from maxjax.experimental.sparse.bcoo import BCOO as BCOO
from maxjax.experimental.sparse.bcoo import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from maxjax.experimental.sparse.bcoo import bcoo_concatenate as bcoo_concatenate
from maxjax.experimental.sparse.bcoo import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from maxjax.experimental.sparse.bcoo import bcoo_dot_general as bcoo_dot_general
from maxjax.experimental.sparse.bcoo import bcoo_dot_general_p as bcoo_dot_general_p
from maxjax.experimental.sparse.bcoo import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from maxjax.experimental.sparse.bcoo import bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p
from maxjax.experimental.sparse.bcoo import bcoo_dynamic_slice as bcoo_dynamic_slice
from maxjax.experimental.sparse.bcoo import bcoo_extract as bcoo_extract
from maxjax.experimental.sparse.bcoo import bcoo_extract_p as bcoo_extract_p
from maxjax.experimental.sparse.bcoo import bcoo_fromdense as bcoo_fromdense
from maxjax.experimental.sparse.bcoo import bcoo_fromdense_p as bcoo_fromdense_p
from maxjax.experimental.sparse.bcoo import bcoo_gather as bcoo_gather
from maxjax.experimental.sparse.bcoo import bcoo_multiply_dense as bcoo_multiply_dense
from maxjax.experimental.sparse.bcoo import bcoo_multiply_sparse as bcoo_multiply_sparse
from maxjax.experimental.sparse.bcoo import bcoo_reduce_sum as bcoo_reduce_sum
from maxjax.experimental.sparse.bcoo import bcoo_reshape as bcoo_reshape
from maxjax.experimental.sparse.bcoo import bcoo_rev as bcoo_rev
from maxjax.experimental.sparse.bcoo import bcoo_slice as bcoo_slice
from maxjax.experimental.sparse.bcoo import bcoo_sort_indices as bcoo_sort_indices
from maxjax.experimental.sparse.bcoo import bcoo_sort_indices_p as bcoo_sort_indices_p
from maxjax.experimental.sparse.bcoo import bcoo_spdot_general_p as bcoo_spdot_general_p
from maxjax.experimental.sparse.bcoo import bcoo_squeeze as bcoo_squeeze
from maxjax.experimental.sparse.bcoo import bcoo_sum_duplicates as bcoo_sum_duplicates
from maxjax.experimental.sparse.bcoo import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from maxjax.experimental.sparse.bcoo import bcoo_todense as bcoo_todense
from maxjax.experimental.sparse.bcoo import bcoo_todense_p as bcoo_todense_p
from maxjax.experimental.sparse.bcoo import bcoo_transpose as bcoo_transpose
from maxjax.experimental.sparse.bcoo import bcoo_transpose_p as bcoo_transpose_p
from maxjax.experimental.sparse.bcoo import bcoo_update_layout as bcoo_update_layout
from maxjax.experimental.sparse.bcsr import BCSR as BCSR
from maxjax.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from maxjax.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from maxjax.experimental.sparse.bcsr import bcsr_dot_general as bcsr_dot_general
from maxjax.experimental.sparse.bcsr import bcsr_dot_general_p as bcsr_dot_general_p
from maxjax.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from maxjax.experimental.sparse.bcsr import bcsr_extract_p as bcsr_extract_p
from maxjax.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from maxjax.experimental.sparse.bcsr import bcsr_fromdense_p as bcsr_fromdense_p
from maxjax.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from maxjax.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from maxjax.experimental.sparse.bcsr import bcsr_todense_p as bcsr_todense_p
from maxjax.experimental.sparse.coo import COO as COO
from maxjax.experimental.sparse.coo import coo_fromdense as coo_fromdense
from maxjax.experimental.sparse.coo import coo_fromdense_p as coo_fromdense_p
from maxjax.experimental.sparse.coo import coo_matmat as coo_matmat
from maxjax.experimental.sparse.coo import coo_matmat_p as coo_matmat_p
from maxjax.experimental.sparse.coo import coo_matvec as coo_matvec
from maxjax.experimental.sparse.coo import coo_matvec_p as coo_matvec_p
from maxjax.experimental.sparse.coo import coo_todense as coo_todense
from maxjax.experimental.sparse.coo import coo_todense_p as coo_todense_p
from maxjax.experimental.sparse.csr import CSC as CSC
from maxjax.experimental.sparse.csr import CSR as CSR
from maxjax.experimental.sparse.csr import csr_fromdense as csr_fromdense
from maxjax.experimental.sparse.csr import csr_fromdense_p as csr_fromdense_p
from maxjax.experimental.sparse.csr import csr_matmat as csr_matmat
from maxjax.experimental.sparse.csr import csr_matmat_p as csr_matmat_p
from maxjax.experimental.sparse.csr import csr_matvec as csr_matvec
from maxjax.experimental.sparse.csr import csr_matvec_p as csr_matvec_p
from maxjax.experimental.sparse.csr import csr_todense as csr_todense
from maxjax.experimental.sparse.csr import csr_todense_p as csr_todense_p
from maxjax.experimental.sparse.random import random_bcoo as random_bcoo
from maxjax.experimental.sparse.transform import SparseTracer as SparseTracer
from maxjax.experimental.sparse.transform import sparsify as sparsify
from maxjax.experimental.sparse.util import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from maxjax.experimental.sparse.util import SparseEfficiencyError as SparseEfficiencyError
from maxjax.experimental.sparse.util import SparseEfficiencyWarning as SparseEfficiencyWarning

explain_missing_names(__name__)
