"""What stands for shardings that are not given."""

from maxjax._higher_order.jit_sharded import UNSPECIFIED as UNSPECIFIED

__all__ = ["UNSPECIFIED"]
