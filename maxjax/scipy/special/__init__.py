"""jax.scipy.special: special functions."""

from typing import TYPE_CHECKING

from maxjax._base.missing import explain_missing_names as _explain_missing_names
from maxjax._higher_order.function_stages import add_stages as _add_stages
from maxjax.scipy.special._beta import beta as beta
from maxjax.scipy.special._beta import betaln as betaln
from maxjax.scipy.special._beta import comb as comb
from maxjax.scipy.special._beta import poch as poch
from maxjax.scipy.special._gamma import bernoulli as bernoulli
from maxjax.scipy.special._gamma import betainc as betainc
from maxjax.scipy.special._gamma import digamma as digamma
from maxjax.scipy.special._gamma import factorial as factorial
from maxjax.scipy.special._gamma import gamma as gamma
from maxjax.scipy.special._gamma import gammainc as gammainc
from maxjax.scipy.special._gamma import gammaincc as gammaincc
from maxjax.scipy.special._gamma import gammaln as gammaln
from maxjax.scipy.special._gamma import gammasgn as gammasgn
from maxjax.scipy.special._gamma import loggamma as loggamma
from maxjax.scipy.special._gamma import multigammaln as multigammaln
from maxjax.scipy.special._gamma import polygamma as polygamma
from maxjax.scipy.special._gamma import zeta as zeta
from maxjax.scipy.special._information import boxcox as boxcox
from maxjax.scipy.special._information import boxcox1p as boxcox1p
from maxjax.scipy.special._information import entr as entr
from maxjax.scipy.special._information import expit as expit
from maxjax.scipy.special._information import kl_div as kl_div
from maxjax.scipy.special._information import log_softmax as log_softmax
from maxjax.scipy.special._information import logit as logit
from maxjax.scipy.special._information import logsumexp as logsumexp
from maxjax.scipy.special._information import rel_entr as rel_entr
from maxjax.scipy.special._information import softmax as softmax
from maxjax.scipy.special._information import xlog1py as xlog1py
from maxjax.scipy.special._information import xlogy as xlogy
from maxjax.scipy.special._integrals import bessel_jn as bessel_jn
from maxjax.scipy.special._integrals import exp1 as exp1
from maxjax.scipy.special._integrals import expi as expi
from maxjax.scipy.special._integrals import expn as expn
from maxjax.scipy.special._integrals import hyp1f1 as hyp1f1
from maxjax.scipy.special._integrals import hyp2f1 as hyp2f1
from maxjax.scipy.special._integrals import i0 as i0
from maxjax.scipy.special._integrals import i0e as i0e
from maxjax.scipy.special._integrals import i1 as i1
from maxjax.scipy.special._integrals import i1e as i1e
from maxjax.scipy.special._integrals import lpmn as lpmn
from maxjax.scipy.special._integrals import lpmn_values as lpmn_values
from maxjax.scipy.special._integrals import sici as sici
from maxjax.scipy.special._integrals import spence as spence
from maxjax.scipy.special._integrals import sph_harm_y as sph_harm_y
from maxjax.scipy.special._normal import dawsn as dawsn
from maxjax.scipy.special._normal import erf as erf
from maxjax.scipy.special._normal import erfc as erfc
from maxjax.scipy.special._normal import erfcinv as erfcinv
from maxjax.scipy.special._normal import erfcx as erfcx
from maxjax.scipy.special._normal import erfinv as erfinv
from maxjax.scipy.special._normal import fresnel as fresnel
from maxjax.scipy.special._normal import log_ndtr as log_ndtr
from maxjax.scipy.special._normal import ndtr as ndtr
from maxjax.scipy.special._normal import ndtri as ndtri
from maxjax.scipy.special._normal import owens_t as owens_t
from maxjax.scipy.special._normal import wofz as wofz

_explain_missing_names(__name__, deprecated={
    _name: (globals()[_name],
            f"jax.scipy.special.{_name} is deprecated; no replacement is planned.")
    for _name in ("lpmn", "lpmn_values")})
if not TYPE_CHECKING:
    del lpmn, lpmn_values

_add_stages(globals(), "bessel_jn gammasgn")
