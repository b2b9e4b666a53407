"""Kernels of maxjax, registered with MAX's graph compiler as `maxjax_<name>`."""
from .arithmetic import *
from .arranged_tensors import *
from .arrangement import *
from .comparison import *
from .conversion import *
from .cumulative import *
from .cumulative_tensors import *
from .device_scatter import *
from .reduced_tensors import *
from .reduction import *
from .scatter import *
from .scattered_tensors import *
from .unary import *
from .window_tensors import *
from .windows import *
