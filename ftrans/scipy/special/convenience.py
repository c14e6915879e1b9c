"""Elementwise functions for statistics, information theory, powers and angles in degrees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ...core.trace import Tracer
from ...core.types import is_complex, is_inexact
from ...numpy.dispatch import implements
from ...numpy.pointwise import sinc
from ...numpy.promotion import asarray, cast, promote
from ...ops import elementwise as e
from ...ops.special import convenience as _convenience
from ...ops.special.arithmetic import over, plus, times
from ...ops.special.exponential import sine_quotient
from .entry import ufunc

__all__ = [
    "boxcox",
    "boxcox1p",
    "cbrt",
    "cosdg",
    "cosm1",
    "cotdg",
    "diric",
    "entr",
    "exp2",
    "exp10",
    "expit",
    "expm1",
    "huber",
    "inv_boxcox",
    "inv_boxcox1p",
    "kl_div",
    "log1p",
    "log_expit",
    "logit",
    "powm1",
    "pseudo_huber",
    "radian",
    "rel_entr",
    "round",
    "sinc",
    "sindg",
    "softplus",
    "tandg",
    "xlog1py",
    "xlogy",
]  # fmt: skip


def _cosm1(x: Tracer) -> Tracer:
    return times(-2, e.square(e.sin(times(0.5, x))))


def _log1p(x: Tracer) -> Tracer:
    return _convenience.log1p(x) if is_complex(x.dtype) else e.log1p(x)


def _radian(degrees: Tracer, minutes: Tracer, seconds: Tracer) -> Tracer:
    return times(math.pi / 180, plus(degrees, plus(times(1 / 60, minutes), times(1 / 3600, seconds))))


boxcox = ufunc("boxcox", _convenience.boxcox)
boxcox1p = ufunc("boxcox1p", _convenience.boxcox1p)
cbrt = ufunc("cbrt", e.cbrt)
cosdg = ufunc("cosdg", _convenience.cosdg)
cosm1 = ufunc("cosm1", _cosm1)
cotdg = ufunc("cotdg", _convenience.cotdg)
entr = ufunc("entr", _convenience.entr)
exp10 = ufunc("exp10", _convenience.exp10)
exp2 = ufunc("exp2", e.exp2)
expit = ufunc("expit", _convenience.expit)
expm1 = ufunc("expm1", e.expm1)
huber = ufunc("huber", _convenience.huber)
inv_boxcox = ufunc("inv_boxcox", _convenience.inv_boxcox)
inv_boxcox1p = ufunc("inv_boxcox1p", _convenience.inv_boxcox1p)
kl_div = ufunc("kl_div", _convenience.kl_div)
log1p = ufunc("log1p", _log1p)
log_expit = ufunc("log_expit", _convenience.log_expit)
logit = ufunc("logit", _convenience.logit)
powm1 = ufunc("powm1", _convenience.powm1)
pseudo_huber = ufunc("pseudo_huber", _convenience.pseudo_huber)
radian = ufunc("radian", _radian)
rel_entr = ufunc("rel_entr", _convenience.rel_entr)
round = ufunc("round", e.rint, constant=True)
sindg = ufunc("sindg", _convenience.sindg)
tandg = ufunc("tandg", _convenience.tandg)
xlog1py = ufunc("xlog1py", _convenience.xlog1py)
xlogy = ufunc("xlogy", _convenience.xlogy)


def _floating(x: Any) -> Any:
    """`x` as a traced value of a floating-point dtype."""
    x = asarray(x)
    return x if is_inexact(x.dtype) else cast(x, np.dtype(float))


def softplus(x: Any) -> Any:
    """`log(1 + exp(x))`, without overflow."""
    return e.neg(_convenience.log_expit(e.neg(_floating(x))))


# SciPy has it since 1.17.
if hasattr(scipy.special, "softplus"):
    softplus = implements(scipy.special.softplus)(softplus)


@implements(scipy.special.diric)
def diric(x: Any, n: Any) -> Any:
    """The periodic sinc function `sin(n x / 2) / (n sin(x / 2))`, with all of its derivatives at multiples of 2 pi."""
    x, n = promote("diric", _floating(x), e.stop_gradient(asarray(n)))
    periods = np.rint(x / (2 * math.pi))
    half = (x - periods * (2 * math.pi)) / 2
    sign = 1 - 2 * ((periods * (n - 1)) % 2)
    is_whole = (n > 0) & (n == np.floor(n))
    quotient: Any = over(sine_quotient(n * half), sine_quotient(half))
    return np.where(is_whole, sign * quotient, math.nan)
