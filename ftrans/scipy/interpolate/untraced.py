"""The functions and classes of `scipy.interpolate` that have no traced form, each with what to write instead."""

from __future__ import annotations

import scipy.interpolate

from ...numpy.dispatch import refused

_CHOSEN = (
    "it chooses knots by the data, which has no derivative; use make_interp_spline, or make_lsq_spline with given knots"
)
_ON_SPHERE = "it runs FITPACK on plain data; use RBFInterpolator with points on the sphere in three coordinates"
_RATIONAL = "it chooses its support points by the data; use BarycentricInterpolator or make_interp_spline"

REASONS = {
    "AAA": _RATIONAL,
    "CloughTocher2DInterpolator": "SciPy finds its gradients by iteration on plain data; use RBFInterpolator",
    "FloaterHormannInterpolator": _RATIONAL,
    "LSQSphereBivariateSpline": _ON_SPHERE,
    "NdBSpline": "use RegularGridInterpolator, whose splines are tensor products",
    "NdPPoly": "use RegularGridInterpolator, or sum the powers of the piece",
    "RectSphereBivariateSpline": _ON_SPHERE,
    "SmoothSphereBivariateSpline": _ON_SPHERE,
    "approximate_taylor_polynomial": "use ftrans.taylor, which is exact",
    "bisplrep": "it chooses knots by the data, which has no derivative; use RectBivariateSpline",
    "generate_knots": _CHOSEN,
    "insert": "use BSpline with the knots that you need",
    "lagrange": "its result is a numpy.poly1d of plain coefficients; use BarycentricInterpolator",
    "make_smoothing_spline": _CHOSEN,
    "make_splprep": _CHOSEN,
    "make_splrep": _CHOSEN,
    "pade": "its results are numpy.poly1d of plain coefficients; solve its linear system by numpy.linalg.solve",
    "spalde": "use splev with der=0, 1, ..., or the method derivatives of UnivariateSpline",
    "splprep": _CHOSEN,
    "sproot": "the number of roots depends on values; use ftrans.root of splev with an initial guess near each root",
}

FUNCTIONS = {
    name: refused(getattr(scipy.interpolate, name), f"scipy.interpolate.{name}", why)
    for name, why in REASONS.items()
    if hasattr(scipy.interpolate, name)
}
