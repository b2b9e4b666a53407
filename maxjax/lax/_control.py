"""Control flow: loops, branches, and what is made of them."""

from maxjax._higher_order.scan import scan
from maxjax._higher_order.while_loop import fori_loop, while_loop

__all__ = ["fori_loop", "scan", "while_loop"]
