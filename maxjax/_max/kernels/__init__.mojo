"""Kernels of maxjax, registered with MAX's graph compiler as `maxjax_<name>`."""
from .arithmetic import *
from .arrangement import *
from .comparison import *
from .conversion import *
from .cumulative import *
from .device_scatter import *
from .reduced_tensors import *
from .reduction import *
from .scatter import *
from .unary import *
from .windows import *
