"""jax.scipy.cluster."""

from __future__ import annotations

from maxjax.scipy.cluster import vq as vq
