"""The functions of `scipy.signal` that have no traced form, each with the reason and what to write instead."""

from __future__ import annotations

import scipy.signal

from ..entries import refused_functions

_PLACES = (
    "it finds positions in a signal, which are integers; find them in the plain signal, and index the traced signal"
)
_DESIGN = (
    "only butter and firwin take traced values; design other filters from plain numbers, outside the traced function "
    "(lfilter and freqz have derivatives with respect to the coefficients)"
)
_PAIRS = "it pairs roots by their values; pass sections, or use zpk2tf, lfilter and freqz"
_SYSTEM = "systems are objects that hold plain matrices; use lfilter or freqz, or ftrans.odeint with the matrices"
_STATES = "its results are objects that hold plain matrices; write the product that you need"
_SPLINES = "use scipy.ndimage.spline_filter1d or map_coordinates"
_WAVE = "write its formula with numpy.cos"
_CHECK = "it checks plain windows; call it outside the traced function"

FUNCTIONS = refused_functions(
    scipy.signal,
    {
        "find_peaks find_peaks_cwt peak_prominences peak_widths argrelextrema argrelmax argrelmin": _PLACES,
        "cheby1 cheby2 ellip bessel iirfilter iirdesign iirnotch iirpeak iircomb gammatone": _DESIGN,
        "buttord cheb1ord cheb2ord ellipord band_stop_obj cheb1ap cheb2ap ellipap": _DESIGN,
        "remez firls firwin2 firwin_2d minimum_phase kaiserord kaiser_beta kaiser_atten findfreqs": _DESIGN,
        "lp2lp lp2hp lp2bp lp2bs normalize": "use the forms for zeros and poles, such as lp2lp_zpk, and zpk2tf",
        "residue residuez invres invresz unique_roots tf2sos zpk2sos sos2zpk": _PAIRS,
        "lsim impulse step bode freqresp dlsim dimpulse dstep dfreqresp dbode": _SYSTEM,
        "ss2tf ss2zpk tf2ss zpk2ss abcd_normalize cont2discrete place_poles": _STATES,
        "cspline1d cspline1d_eval cspline2d qspline1d qspline1d_eval qspline2d spline_filter gauss_spline": _SPLINES,
        "symiirorder1 symiirorder2": "use lfilter, forwards and backwards",
        "sepfir2d": "use scipy.ndimage.correlate1d along each axis",
        "chirp sweep_poly gausspulse": _WAVE,
        "sawtooth square": "it jumps; use numpy.where, numpy.mod and numpy.sign",
        "czt zoom_fft czt_points": "multiply by the matrix numpy.exp(-1j * numpy.outer(angles, numpy.arange(n)))",
        "lombscargle vectorstrength": "write its sums of products with numpy.cos and numpy.sin",
        "envelope": "use numpy.abs of hilbert",
        "check_COLA check_NOLA closest_STFT_dual_window": _CHECK,
    },
)
