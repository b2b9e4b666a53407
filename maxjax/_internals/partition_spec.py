"""What pickles of specifications that JAX wrote name."""

from maxjax._base.meshes import PartitionSpec as PartitionSpec
from maxjax._base.meshes import UnreducedKind as UnreducedKind
