"""The classes of what slices make arrays of."""

from maxjax.numpy._grids import CClass as CClass
from maxjax.numpy._grids import RClass as RClass
