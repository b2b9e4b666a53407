"""Pointers."""
from std.memory.pointer import Pointer, unsafe_memcpy
