"""Kernels of maxjax, registered with MAX's graph compiler as `maxjax_<name>`."""
from .arithmetic import *
from .conversion import *
from .unary import *
from .reduction import *
from .arrangement import *
from .cumulative import *
from .scatter import *
