"""Elliptic integrals and functions."""

from __future__ import annotations

from ...ops.special import elliptic as _elliptic
from .entry import ufunc

ellipk = ufunc("ellipk", _elliptic.ellipk)
ellipkm1 = ufunc("ellipkm1", _elliptic.ellipkm1)
ellipe = ufunc("ellipe", _elliptic.ellipe)
ellipkinc = ufunc("ellipkinc", _elliptic.ellipkinc)
ellipeinc = ufunc("ellipeinc", _elliptic.ellipeinc)
ellipj = ufunc("ellipj", _elliptic.ellipj)
elliprc = ufunc("elliprc", _elliptic.elliprc)
elliprd = ufunc("elliprd", _elliptic.elliprd)
elliprf = ufunc("elliprf", _elliptic.elliprf)
elliprg = ufunc("elliprg", _elliptic.elliprg)
elliprj = ufunc("elliprj", _elliptic.elliprj)
agm = ufunc("agm", _elliptic.agm)

__all__ = [
    "agm",
    "ellipe",
    "ellipeinc",
    "ellipj",
    "ellipk",
    "ellipkinc",
    "ellipkm1",
    "elliprc",
    "elliprd",
    "elliprf",
    "elliprg",
    "elliprj",
]
