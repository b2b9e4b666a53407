"""jax.experimental.pallas: kernels over blocks of arrays, interpreted.

On CPUs JAX runs kernels with ``pallas_call(..., interpret=True)`` alone, and so does maxjax, on
every backend: the loop over the grid is a program like any other. Nothing compiles a kernel for a
device.
"""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax.experimental.pallas._call import pallas_call as pallas_call
from maxjax.experimental.pallas._grid import num_programs as num_programs
from maxjax.experimental.pallas._grid import program_id as program_id
from maxjax.experimental.pallas._operations import align_to as align_to
from maxjax.experimental.pallas._operations import broadcast_to as broadcast_to
from maxjax.experimental.pallas._operations import cdiv as cdiv
from maxjax.experimental.pallas._operations import debug_print as debug_print
from maxjax.experimental.pallas._operations import empty as empty
from maxjax.experimental.pallas._operations import empty_like as empty_like
from maxjax.experimental.pallas._operations import estimate_cost as estimate_cost
from maxjax.experimental.pallas._operations import loop as loop
from maxjax.experimental.pallas._operations import multiple_of as multiple_of
from maxjax.experimental.pallas._operations import next_power_of_2 as next_power_of_2
from maxjax.experimental.pallas._operations import reciprocal as reciprocal
from maxjax.experimental.pallas._operations import run_scoped as run_scoped
from maxjax.experimental.pallas._operations import run_state as run_state
from maxjax.experimental.pallas._operations import strides_from_shape as strides_from_shape
from maxjax.experimental.pallas._operations import when as when
from maxjax.experimental.pallas._operations import with_scoped as with_scoped
from maxjax.experimental.pallas._specs import ANY as ANY
from maxjax.experimental.pallas._specs import HOST as HOST
from maxjax.experimental.pallas._specs import Blocked as Blocked
from maxjax.experimental.pallas._specs import BlockSpec as BlockSpec
from maxjax.experimental.pallas._specs import BoundedSlice as BoundedSlice
from maxjax.experimental.pallas._specs import Buffered as Buffered
from maxjax.experimental.pallas._specs import CostEstimate as CostEstimate
from maxjax.experimental.pallas._specs import Element as Element
from maxjax.experimental.pallas._specs import GridSpec as GridSpec
from maxjax.experimental.pallas._specs import MemoryRef as MemoryRef
from maxjax.experimental.pallas._specs import MemorySpace as MemorySpace
from maxjax.experimental.pallas._specs import RevisitMode as RevisitMode
from maxjax.experimental.pallas._specs import Squeezed as Squeezed
from maxjax.experimental.pallas._specs import no_block_spec as no_block_spec
from maxjax.experimental.pallas._specs import squeezed as squeezed
from maxjax.numpy._index_parsing import Slice as Slice
from maxjax.numpy._refs import ds as ds

dslice = ds

explain_missing_names(__name__)
