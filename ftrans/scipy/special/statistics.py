"""Distribution functions and their inverses."""

from __future__ import annotations

from ...ops.special import kolmogorov as _kolmogorov
from ...ops.special import noncentral as _noncentral
from ...ops.special import noncentral_t as _noncentral_t
from ...ops.special import normal as _normal
from ...ops.special import statistics as _statistics
from .entry import ufunc

bdtr = ufunc("bdtr", _statistics.bdtr)
bdtrc = ufunc("bdtrc", _statistics.bdtrc)
bdtri = ufunc("bdtri", _statistics.bdtri)
bdtrik = ufunc("bdtrik", _statistics.bdtrik)
bdtrin = ufunc("bdtrin", _statistics.bdtrin)
btdtria = ufunc("btdtria", _statistics.btdtria)
btdtrib = ufunc("btdtrib", _statistics.btdtrib)
chdtr = ufunc("chdtr", _statistics.chdtr)
chdtrc = ufunc("chdtrc", _statistics.chdtrc)
chdtri = ufunc("chdtri", _statistics.chdtri)
chdtriv = ufunc("chdtriv", _statistics.chdtriv)
chndtr = ufunc("chndtr", _noncentral.chndtr)
chndtridf = ufunc("chndtridf", _noncentral.chndtridf)
chndtrinc = ufunc("chndtrinc", _noncentral.chndtrinc)
chndtrix = ufunc("chndtrix", _noncentral.chndtrix)
fdtr = ufunc("fdtr", _statistics.fdtr)
fdtrc = ufunc("fdtrc", _statistics.fdtrc)
fdtri = ufunc("fdtri", _statistics.fdtri)
fdtridfd = ufunc("fdtridfd", _statistics.fdtridfd)
gdtr = ufunc("gdtr", _statistics.gdtr)
gdtrc = ufunc("gdtrc", _statistics.gdtrc)
gdtria = ufunc("gdtria", _statistics.gdtria)
gdtrib = ufunc("gdtrib", _statistics.gdtrib)
gdtrix = ufunc("gdtrix", _statistics.gdtrix)
kolmogi = ufunc("kolmogi", _kolmogorov.kolmogi)
kolmogorov = ufunc("kolmogorov", _kolmogorov.kolmogorov)
nbdtr = ufunc("nbdtr", _statistics.nbdtr)
nbdtrc = ufunc("nbdtrc", _statistics.nbdtrc)
nbdtri = ufunc("nbdtri", _statistics.nbdtri)
nbdtrik = ufunc("nbdtrik", _statistics.nbdtrik)
nbdtrin = ufunc("nbdtrin", _statistics.nbdtrin)
ncfdtr = ufunc("ncfdtr", _noncentral.ncfdtr)
ncfdtri = ufunc("ncfdtri", _noncentral.ncfdtri)
ncfdtridfd = ufunc("ncfdtridfd", _noncentral.ncfdtridfd)
ncfdtridfn = ufunc("ncfdtridfn", _noncentral.ncfdtridfn)
ncfdtrinc = ufunc("ncfdtrinc", _noncentral.ncfdtrinc)
nctdtr = ufunc("nctdtr", _noncentral_t.nctdtr)
nctdtridf = ufunc("nctdtridf", _noncentral_t.nctdtridf)
nctdtrinc = ufunc("nctdtrinc", _noncentral_t.nctdtrinc)
nctdtrit = ufunc("nctdtrit", _noncentral_t.nctdtrit)
nrdtrimn = ufunc("nrdtrimn", _normal.nrdtrimn)
nrdtrisd = ufunc("nrdtrisd", _normal.nrdtrisd)
owens_t = ufunc("owens_t", _normal.owens_t)
pdtr = ufunc("pdtr", _statistics.pdtr)
pdtrc = ufunc("pdtrc", _statistics.pdtrc)
pdtri = ufunc("pdtri", _statistics.pdtri)
pdtrik = ufunc("pdtrik", _statistics.pdtrik)
smirnov = ufunc("smirnov", _kolmogorov.smirnov)
smirnovi = ufunc("smirnovi", _kolmogorov.smirnovi)
stdtr = ufunc("stdtr", _statistics.stdtr)
stdtridf = ufunc("stdtridf", _statistics.stdtridf)
stdtrit = ufunc("stdtrit", _statistics.stdtrit)
tklmbda = ufunc("tklmbda", _normal.tklmbda)

__all__ = [
    "bdtr",
    "bdtrc",
    "bdtri",
    "bdtrik",
    "bdtrin",
    "btdtria",
    "btdtrib",
    "chdtr",
    "chdtrc",
    "chdtri",
    "chdtriv",
    "chndtr",
    "chndtridf",
    "chndtrinc",
    "chndtrix",
    "fdtr",
    "fdtrc",
    "fdtri",
    "fdtridfd",
    "gdtr",
    "gdtrc",
    "gdtria",
    "gdtrib",
    "gdtrix",
    "kolmogi",
    "kolmogorov",
    "nbdtr",
    "nbdtrc",
    "nbdtri",
    "nbdtrik",
    "nbdtrin",
    "ncfdtr",
    "ncfdtri",
    "ncfdtridfd",
    "ncfdtridfn",
    "ncfdtrinc",
    "nctdtr",
    "nctdtridf",
    "nctdtrinc",
    "nctdtrit",
    "nrdtrimn",
    "nrdtrisd",
    "owens_t",
    "pdtr",
    "pdtrc",
    "pdtri",
    "pdtrik",
    "smirnov",
    "smirnovi",
    "stdtr",
    "stdtridf",
    "stdtrit",
    "tklmbda",
]
