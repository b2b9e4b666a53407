"""What kernels and Python agree on: `python -m tools.write_abi` writes it.

The table is `mojo/abi.py`. `AT_` and a name: where an integer of a generated kernel's call is
behind the places of operands, which are `PLACE` integers each. `TAPE_`: what stands before a call's
integers in a tape.
"""

comptime MOST_DIMENSIONS = 16
comptime PLACE = 2
comptime AT_THREADS = 0
comptime AT_ITEMS = 1
comptime AT_LENGTH = 2
comptime AT_PIECES = 3
comptime AT_ROWS = 4
comptime AT_STRIDES = 5
comptime TAPE_FUNCTION = 0
comptime TAPE_INTEGERS = 1
comptime TAPE_WORDS = 2
comptime CREW_NAME = "maxjax_crew"
comptime CREW_WORDS = 112
