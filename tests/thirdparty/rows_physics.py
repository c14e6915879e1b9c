"""Functions of packages for colour, light, rotations, circuits and mathematics."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import ftrans as ft

from .row import MASK, SUBCLASS, Row, everywhere

COLOUR = [0.2, 0.3, 0.4]
TURNED = [0.9, 0.2, 0.3, 0.1]


def lambdified(lambdify: Any, x: Any) -> Any:
    """An expression of SymPy as a function of NumPy."""
    sympy = importlib.import_module("sympy")
    a, b = sympy.symbols("a b")
    return lambdify((a, b), sympy.sin(a) * sympy.exp(-b) + sympy.Piecewise((a**2, a > 0), (b, True)))(x[0], x[1])


def lambdified_by_math(lambdify: Any, x: Any) -> Any:
    """The same as a function of the module math, made by SymPy: it belongs to no package, so it is patched itself."""
    sympy = importlib.import_module("sympy")
    a, b = sympy.symbols("a b")
    f = lambdify((a, b), sympy.sin(a) * sympy.exp(-b) + sympy.gamma(a), modules="math")
    return ft.patch(f)(x[0], x[1])


def with_uncertainty(ufloat: Any, x: Any) -> Any:
    """The standard deviation that uncertainties propagates."""
    return (ufloat(x[0], 0.1) * ufloat(x[1], 0.2)).std_dev


def reflected(coherent: Any, x: Any) -> Any:
    """What a thin film reflects, by its thickness and the wavelength."""
    return coherent("s", [1.0, 2.2, 1.5], [np.inf, x[0], np.inf], 0.3, x[1])["R"]


def turned(quaternion: Any, x: Any) -> Any:
    """A vector that a quaternion turns."""
    return quaternion(x[0], x[1], x[2], x[3]).rotate(np.array([1.0, 0.0, 0.5]))[0]


def circuit(custom: Any, x: Any) -> Any:
    """The impedance of a circuit at two frequencies, by its resistances."""
    model = custom("R0-p(R1,C1)", initial_guess=[x[0], x[1], 1e-3])
    return np.sum(np.abs(model.predict(np.array([10.0, 100.0]))))


def line(media: Any, x: Any) -> Any:
    """The reflection of a line that ends in a load, by scikit-rf."""
    frequency = importlib.import_module("skrf").Frequency(1.0, 2.0, 3, "ghz")
    return np.sum(np.abs(media(frequency, z0=50.0).load(x).s))


def variogram(model: Any, x: Any) -> Any:
    """A model of gstools at some distances."""
    return np.sum(model(dim=2, var=x[0], len_scale=x[1]).variogram(np.array([0.5, 1.0, 2.0])))


def decomposed(decompose: Any, x: Any) -> Any:
    """What tensorly's decomposition of a tensor by singular values gives back."""
    tensorly = importlib.import_module("tensorly")
    return np.sum(tensorly.tucker_to_tensor(decompose(x.reshape(2, 2, 2), rank=[1, 1, 1])) ** 2)


ROWS = [
    # Colour
    Row("colour.XYZ_to_Lab", lambda f, x: f(x)[0], COLOUR),
    Row("colour.XYZ_to_Luv", lambda f, x: f(x)[1], COLOUR),
    Row("colour.XYZ_to_sRGB", lambda f, x: f(x)[1], COLOUR),
    Row("colour.sRGB_to_XYZ", lambda f, x: f(x)[2], COLOUR),
    Row("colour.Lab_to_XYZ", lambda f, x: f(x)[0], [50.0, 20.0, -30.0]),
    Row("colour.XYZ_to_xyY", lambda f, x: f(x)[0], COLOUR),
    Row("colour.XYZ_to_Oklab", lambda f, x: f(x)[1], COLOUR),
    Row("colour.XYZ_to_CIECAM02", lambda f, x: f(x * 100, [95.05, 100.0, 108.88], 318.31, 20.0).J, COLOUR),
    Row("colour.XYZ_to_CAM16", lambda f, x: f(x * 100, [95.05, 100.0, 108.88], 318.31, 20.0).C, COLOUR),
    Row("colour.XYZ_to_IPT", lambda f, x: f(x)[0], COLOUR),
    Row("colour.RGB_to_HSV", lambda f, x: f(x)[1], COLOUR),
    Row("colour.difference.delta_E_CIE2000", lambda f, x: f(x, np.array([50.0, 15.0, -25.0])), [50.0, 20.0, -30.0]),
    Row("colour.difference.delta_E_CIE1994", lambda f, x: f(x, np.array([50.0, 15.0, -25.0])), [50.0, 20.0, -30.0]),
    Row("colour.difference.delta_E_CMC", lambda f, x: f(x, np.array([50.0, 15.0, -25.0])), [50.0, 20.0, -30.0]),
    Row("colour.temperature.CCT_to_xy_CIE_D", lambda f, x: f(x)[0], 6500.0),
    Row("colour.xy_to_CCT", lambda f, x: f(x, method="McCamy 1992"), [0.31, 0.32]),
    Row("colour.models.eotf_ST2084", lambda f, x: f(x), 0.5),
    Row("colour.lightness", lambda f, x: f(x), 12.2),
    Row("colour.chromatic_adaptation", lambda f, x: f(x, [0.95, 1.0, 1.08], [1.1, 1.0, 0.35])[0], COLOUR),
    Row(
        "colormath.color_diff_matrix.delta_e_cie2000",
        lambda f, x: f(x, np.array([[50.0, 15.0, -25.0]]))[0],
        [50.0, 20.0, -30.0],
    ),
    # Light and matter
    Row("tmm.coh_tmm", reflected, [0.1, 0.6]),
    Row("tmm.snell", lambda f, x: f(1.0, x[0], x[1]).real, [1.5, 0.4]),
    Row("miepython.efficiencies", lambda f, x: f(1.5 - 0.1j, x[0], x[1])[0], [2.0, 0.6]),
    Row("periodictable.xsf.index_of_refraction", lambda f, x: (1 - f("SiO2", density=x, energy=8.0).real) * 1e6, 2.2),
    # Rotations
    Row("ahrs.common.orientation.q2R", lambda f, x: np.sum(f(x) * np.arange(9.0).reshape(3, 3)), TURNED),
    Row("ahrs.common.orientation.acc2q", lambda f, x: f(x)[0], [0.1, 0.3, 9.7]),
    Row("ahrs.common.quaternion.Quaternion", lambda q, x: q(x).to_angles()[0], TURNED, SUBCLASS),
    Row("ahrs.utils.wgs84.WGS.normal_gravity", lambda w, x: w().normal_gravity(x[0], x[1]), [52.0, 100.0]),
    Row("transforms3d.euler.euler2mat", lambda f, x: np.sum(f(*x) * np.arange(9.0).reshape(3, 3)), COLOUR),
    Row(
        "transforms3d.euler.mat2euler",
        lambda f, x: f(x)[1],
        [[0.98, -0.1, 0.15], [0.12, 0.99, -0.1], [-0.14, 0.11, 0.98]],
    ),
    Row("transforms3d.quaternions.quat2mat", lambda f, x: f(x)[0, 1], TURNED),
    Row("transforms3d.quaternions.rotate_vector", lambda f, x: f([1.0, 0.0, 0.5], x)[0], TURNED),
    Row("transforms3d.axangles.axangle2mat", lambda f, x: f(x[:3], x[3])[0, 1], TURNED),
    Row("pyquaternion.Quaternion", turned, TURNED),
    # Circuits and waves
    Row(
        "impedance.models.circuits.CustomCircuit",
        circuit,
        [10.0, 20.0],
        everywhere("numbers are written as text, and evaluated"),
    ),
    Row("skrf.media.DefinedGammaZ0", line, 0.3),
    Row("skrf.mathFunctions.complex_2_db", lambda f, x: f(x[0] + 1j * x[1]), [0.3, 0.4]),
    Row(
        "pywt.dwt",
        lambda f, x: np.sum(f(x, "db2")[0] ** 2),
        [0.3, 0.8, 1.1, -0.4, 0.6, 0.2],
        everywhere("C code computes it"),
    ),
    Row("nfft.ndft", lambda f, x: np.sum(np.abs(f(np.linspace(-0.4, 0.4, 4), x + 0j)) ** 2), [0.3, 0.8, 1.1, -0.4]),
    Row("radvel.kepler.kepler", lambda f, x: f(np.array([0.5, 0.9]), np.ones(2) * x)[0], 0.3, MASK),
    Row("skimage.color.rgb2lab", lambda f, x: f(x)[0], COLOUR, MASK),
    Row("skimage.filters.gaussian", lambda f, x: np.sum(f(x, 1.0) ** 2), [[0.3, 0.8], [1.1, -0.4]]),
    Row("skimage.metrics.mean_squared_error", lambda f, x: f(x, np.ones((2, 2))), [[0.3, 0.8], [1.1, -0.4]]),
    # Mathematics
    Row("sympy.lambdify", lambdified, [0.7, 0.3]),
    Row("sympy.utilities.lambdify.lambdify", lambdified_by_math, [0.7, 0.3]),
    Row("uncertainties.ufloat", with_uncertainty, [1.2, 0.7]),
    Row(
        "uncertainties.umath.sin",
        lambda f, x: f(importlib.import_module("uncertainties").ufloat(x, 0.1)).nominal_value,
        0.7,
    ),
    Row("gstools.Gaussian", variogram, [1.2, 0.7]),
    Row("gstools.Matern", variogram, [1.2, 0.7], MASK),
    Row("tensorly.decomposition.tucker", decomposed, [0.3, 0.8, 1.1, -0.4, 0.6, 0.2, -0.3, 0.5]),
    Row("tensorly.tenalg.khatri_rao", lambda f, x: np.sum(f([x, np.ones((3, 2))]) ** 2), [[0.3, 0.8], [1.1, -0.4]]),
    *[
        Row(f"opfunu.name_based.{name}", lambda f, x: f(ndim=2).evaluate(x), [0.3, 0.8])
        for name in ("Ackley01", "Griewank", "Rana", "Salomon")
    ],
]
