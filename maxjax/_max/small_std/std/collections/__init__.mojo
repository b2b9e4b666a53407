"""Arrays, lists, and a look at either."""
from std.collections.array import Array
from std.collections.list import List
from std.collections.span import Span, len
