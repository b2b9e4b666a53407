"""Gaussian kernel density estimation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxjax import lax, random, tree_util
from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import check_arraylike, promote_inexact
from maxjax.scipy.special import logsumexp


@tree_util.register_pytree_node_class
class gaussian_kde:
    """Estimates the density from which points were sampled, as a mixture of Gaussians at them.

    Args:
      dataset: shape ``(N,)`` or ``(D, N)``.
      bw_method: the bandwidth factor: "scott" (the default), "silverman", a number, or a
        function of the estimate.
      weights: of the points, shape ``(N,)``.

    Attributes: ``dataset``, ``weights``, ``covariance``, ``inv_cov``, ``neff``, ``d``, ``n``.

    >>> kde = jax.scipy.stats.gaussian_kde(jnp.array([0., 1.]), bw_method=1.0)
    >>> kde(jnp.array([0.5])).round(4)
    Array([0.4394], dtype=float32)
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None):
        check_arraylike("gaussian_kde", dataset)
        dataset = jnp.atleast_2d(jnp.asarray(dataset))
        if jnp.issubdtype(dataset.dtype, np.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if not dataset.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        d, n = dataset.shape
        if weights is None:
            dataset, = promote_inexact("gaussian_kde", dataset)
            weights = jnp.full(n, 1.0 / n, dtype=dataset.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            dataset, weights = promote_inexact("gaussian_kde", dataset, weights)
            weights = jnp.atleast_1d(weights)
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if len(weights) != n:
                raise ValueError("`weights` input should be of length n")
            weights = weights / jnp.sum(weights)
        self.dataset, self.weights = dataset, weights
        self.neff = 1 / jnp.sum(weights ** 2)
        if bw_method is None or (isinstance(bw_method, str) and bw_method == "scott"):
            factor = jnp.power(self.neff, -1.0 / (d + 4))
        elif isinstance(bw_method, str) and bw_method == "silverman":
            factor = jnp.power(self.neff * (d + 2) / 4.0, -1.0 / (d + 4))
        elif jnp.isscalar(bw_method):
            factor = bw_method
        elif callable(bw_method):
            factor = bw_method(self)
        else:
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
        spread = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        self.covariance = spread * factor ** 2
        self.inv_cov = jnp.linalg.inv(spread) / factor ** 2

    def tree_flatten(self) -> Any:
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, data: Any, children: Any) -> gaussian_kde:
        kde = cls.__new__(cls)
        kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov = children
        return kde

    @property
    def d(self) -> int:
        """The dimension of the points."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def _points(self, points: Any) -> Array:
        points = jnp.atleast_2d(jnp.asarray(points))
        if jnp.issubdtype(points.dtype, np.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex coordinates")
        d, m = points.shape
        if d != self.d:
            if d == 1 and m == self.d:
                return points.reshape(self.d, 1)
            raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
        return points

    def _log_sums(self, dataset: Any, weights: Any, points: Any, covariance: Any) -> Array:
        """The logarithm, at each point, of a weighted sum of Gaussians at the data."""
        dataset, weights, points, covariance = promote_inexact(
            "gaussian_kde", dataset, weights, points, covariance)
        factor = jnp.linalg.cholesky(covariance)
        def white(x: Any) -> Array:
            return lax.linalg.triangular_solve(factor, x, left_side=True, lower=True)
        gaps = white(dataset)[:, :, None] - white(points)[:, None, :]
        norm = 0.5 * self.d * math.log(2 * math.pi) + jnp.sum(jnp.log(jnp.diag(factor)))
        return logsumexp(-0.5 * jnp.sum(gaps * gaps, axis=0) - norm, axis=0,
                         b=weights[:, None])

    def evaluate(self, points: Any) -> Array:
        """The density at points of shape ``(D, M)`` or ``(M,)``."""
        check_arraylike("evaluate", points)
        return jnp.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: Any) -> Array:
        """The density; see ``evaluate``."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the density."""
        check_arraylike("logpdf", x)
        return self._log_sums(self.dataset, self.weights, self._points(x), self.covariance)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """The integral of the product with a Gaussian."""
        mean = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean)))
        cov = jnp.atleast_2d(jnp.asarray(cov))
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return jnp.exp(self._log_sums(self.dataset, self.weights, mean[:, None],
                                      self.covariance + cov)[0])

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """The integral of a one-dimensional density from ``low`` to ``high``."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if jnp.ndim(low) != 0 or jnp.ndim(high) != 0:
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        sigma = jnp.squeeze(jnp.sqrt(self.covariance))
        root = math.sqrt(0.5)
        def cdf(x: Any) -> Array:
            return 0.5 * lax.erfc(-root * jnp.squeeze((x - self.dataset) / sigma))
        return jnp.sum(self.weights * (cdf(high) - cdf(low)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product with another estimate."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        logs = self._log_sums(self.dataset, self.weights, other.dataset,
                              self.covariance + other.covariance)
        return jnp.sum(jnp.exp(logs) * other.weights)

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Samples of shape ``(D, *shape)``."""
        chosen, noise = random.split(key)
        index = random.choice(chosen, self.n, shape=shape, p=self.weights)
        gaussian = random.multivariate_normal(noise, jnp.zeros(self.d, self.covariance.dtype),
                                              self.covariance, shape=shape,
                                              dtype=self.dataset.dtype)
        return self.dataset[:, index] + jnp.moveaxis(gaussian, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not implemented, as in JAX."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> Any:
        """Not implemented, as in JAX."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")
