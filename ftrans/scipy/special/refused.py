"""The functions of `scipy.special` that have no traced form, by family: why, and what to do instead.

Under their names here, they are SciPy's own on plain arrays and an error on traced values.
"""

from __future__ import annotations

import scipy.special

from ...numpy.dispatch import REFUSED, refused


def _alike(names: str, why: str) -> dict[str, str]:
    """Functions that are refused for one reason."""
    return dict.fromkeys(names.split(), why)


_OF_WHOLE_NUMBERS = "its arguments are integers, so it has no derivative; call it with plain numbers"
_FOR_ONE_NUMBER = "it takes single plain numbers; "

_ERRORS = _alike("erf_zeros fresnel_zeros fresnelc_zeros fresnels_zeros", _OF_WHOLE_NUMBERS)

_BESSEL = {
    **_alike(
        """
        ai_zeros bi_zeros bei_zeros beip_zeros ber_zeros berp_zeros kei_zeros keip_zeros kelvin_zeros ker_zeros
        kerp_zeros jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros y0_zeros y1_zeros y1p_zeros yn_zeros ynp_zeros
        """,
        _OF_WHOLE_NUMBERS,
    ),
    "lmbda": _FOR_ONE_NUMBER + "write gamma(v + 1) * (x / 2)**-v * jv(v, x)",
    "riccati_jn": _FOR_ONE_NUMBER + "write x * spherical_jn(n, x)",
    "riccati_yn": _FOR_ONE_NUMBER + "write x * spherical_yn(n, x)",
}

_POLYNOMIALS = {
    **_alike(
        """
        roots_chebyc roots_chebys roots_chebyt roots_chebyu roots_hermite roots_hermitenorm roots_laguerre
        roots_legendre roots_sh_chebyt roots_sh_chebyu roots_sh_legendre c_roots s_roots t_roots u_roots h_roots
        he_roots l_roots p_roots ts_roots us_roots ps_roots
        """,
        _OF_WHOLE_NUMBERS,
    ),
    **_alike(
        "roots_gegenbauer roots_genlaguerre roots_jacobi roots_sh_jacobi cg_roots la_roots j_roots js_roots",
        "derivatives of nodes and weights with respect to the parameters are not known; hold these constant, as plain"
        " numbers",
    ),
    **_alike(
        """
        chebyc chebys chebyt chebyu gegenbauer genlaguerre hermite hermitenorm jacobi laguerre legendre sh_chebyt
        sh_chebyu sh_jacobi sh_legendre
        """,
        "it creates a polynomial from plain numbers; write eval_legendre(n, x), and similarly for the other families",
    ),
    **_alike(
        "legendre_p_all assoc_legendre_p_all sph_legendre_p_all sph_harm_y_all",
        "call the function without _all, with arrays of degrees and orders",
    ),
    **_alike("lpn lpmn clpmn", _FOR_ONE_NUMBER + "write eval_legendre(n, x) or lpmv(m, n, x) with arrays of degrees"),
    **_alike("lqn lqmn", _FOR_ONE_NUMBER + "write other Legendre functions with hyp2f1"),
}

_WAVES = {
    **_alike(
        "obl_rad2 obl_rad2_cv",
        "SciPy's values for small arguments do not solve the spheroidal equation, and its derivatives do not match its"
        " values; apply it to plain arrays",
    ),
    **_alike(
        "mathieu_even_coef mathieu_odd_coef obl_cv_seq pro_cv_seq",
        _FOR_ONE_NUMBER + "derivatives with respect to them are not known",
    ),
    **_alike("pbdv_seq pbdn_seq pbvv_seq", _FOR_ONE_NUMBER + "write pbdv or pbvv with an array of orders"),
    **_alike(
        "ellip_harm ellip_harm_2 ellip_normal",
        _FOR_ONE_NUMBER + "derivatives of Lame functions are not known",
    ),
}


_REASONS = {
    name: why
    for family in (_ERRORS, _BESSEL, _POLYNOMIALS, _WAVES)
    for name, why in family.items()
    if hasattr(scipy.special, name)
}
# The ufuncs behind scipy.special.zeta, which is itself no ufunc.
REFUSED.update(dict.fromkeys(("_zeta", "_riemann_zeta"), "call ftrans.scipy.special.zeta, which can be"))
globals().update(
    {name: refused(getattr(scipy.special, name), f"scipy.special.{name}", why) for name, why in _REASONS.items()}
)

__all__ = list(_REASONS)
