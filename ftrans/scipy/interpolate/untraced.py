"""The functions and classes of `scipy.interpolate` that have no traced form, each with what to write instead."""

from __future__ import annotations

import scipy.interpolate

from ...numpy.dispatch import refused

_CHOSEN = "it chooses knots by the data, which has no derivative; take make_interp_spline, or make_lsq_spline of knots"
_ON_SPHERE = "it is FITPACK's for plain data; take RBFInterpolator of points on the sphere in three coordinates"
_RATIONAL = "its supports are chosen by the data; take BarycentricInterpolator or make_interp_spline"

REASONS = {
    "AAA": _RATIONAL,
    "CloughTocher2DInterpolator": "its gradients are SciPy's iteration on plain data; take RBFInterpolator",
    "FloaterHormannInterpolator": _RATIONAL,
    "LSQSphereBivariateSpline": _ON_SPHERE,
    "NdBSpline": "take RegularGridInterpolator, whose splines are tensor products",
    "NdPPoly": "take RegularGridInterpolator, or sum the powers of the piece",
    "RectSphereBivariateSpline": _ON_SPHERE,
    "SmoothSphereBivariateSpline": _ON_SPHERE,
    "approximate_taylor_polynomial": "take ftrans.taylor, which is exact",
    "bisplrep": "it chooses knots by the data, which has no derivative; take RectBivariateSpline",
    "generate_knots": _CHOSEN,
    "insert": "take BSpline with the knots that you need",
    "lagrange": "its result is a numpy.poly1d of plain coefficients; take BarycentricInterpolator",
    "make_smoothing_spline": _CHOSEN,
    "make_splprep": _CHOSEN,
    "make_splrep": _CHOSEN,
    "pade": "its results are numpy.poly1d of plain coefficients; solve its linear system by numpy.linalg.solve",
    "spalde": "take splev with der=0, 1, ..., or the method derivatives of UnivariateSpline",
    "splprep": _CHOSEN,
    "sproot": "how many roots there are depends on values; take ftrans.root of splev from a start near each root",
}

FUNCTIONS = {
    name: refused(getattr(scipy.interpolate, name), f"scipy.interpolate.{name}", why)
    for name, why in REASONS.items()
    if hasattr(scipy.interpolate, name)
}
