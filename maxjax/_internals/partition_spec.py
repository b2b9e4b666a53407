"""What pickles of specifications that JAX wrote name."""

from maxjax._base.specs import PartitionSpec as PartitionSpec
from maxjax._base.specs import UnreducedKind as UnreducedKind
