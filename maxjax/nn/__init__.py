"""jax.nn: functions for neural networks."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.function_stages import add_stages, refuse_unhashable
from maxjax.nn import initializers as initializers
from maxjax.nn._activations import celu as celu
from maxjax.nn._activations import elu as elu
from maxjax.nn._activations import gelu as gelu
from maxjax.nn._activations import glu as glu
from maxjax.nn._activations import hard_sigmoid as hard_sigmoid
from maxjax.nn._activations import hard_silu as hard_silu
from maxjax.nn._activations import hard_swish as hard_swish
from maxjax.nn._activations import hard_tanh as hard_tanh
from maxjax.nn._activations import identity as identity
from maxjax.nn._activations import leaky_relu as leaky_relu
from maxjax.nn._activations import log1mexp as log1mexp
from maxjax.nn._activations import log_sigmoid as log_sigmoid
from maxjax.nn._activations import mish as mish
from maxjax.nn._activations import relu as relu
from maxjax.nn._activations import relu6 as relu6
from maxjax.nn._activations import selu as selu
from maxjax.nn._activations import sigmoid as sigmoid
from maxjax.nn._activations import silu as silu
from maxjax.nn._activations import soft_sign as soft_sign
from maxjax.nn._activations import softplus as softplus
from maxjax.nn._activations import sparse_plus as sparse_plus
from maxjax.nn._activations import sparse_sigmoid as sparse_sigmoid
from maxjax.nn._activations import squareplus as squareplus
from maxjax.nn._activations import swish as swish
from maxjax.nn._activations import tanh as tanh
from maxjax.nn._attention import dot_product_attention as dot_product_attention
from maxjax.nn._attention import get_scaled_dot_general_config as get_scaled_dot_general_config
from maxjax.nn._attention import scaled_dot_general as scaled_dot_general
from maxjax.nn._attention import scaled_matmul as scaled_matmul
from maxjax.nn._normalization import log_softmax as log_softmax
from maxjax.nn._normalization import logmeanexp as logmeanexp
from maxjax.nn._normalization import logsumexp as logsumexp
from maxjax.nn._normalization import one_hot as one_hot
from maxjax.nn._normalization import softmax as softmax
from maxjax.nn._normalization import standardize as standardize

add_stages(globals(), "glu log_softmax logmeanexp sigmoid standardize tanh")
refuse_unhashable(globals(), "logsumexp", "keepdims")
refuse_unhashable(globals(), "one_hot", "dtype", "axis")
explain_missing_names(__name__)
