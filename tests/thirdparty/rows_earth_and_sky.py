"""Functions of packages for the sun, the sky, the sea, the weather and the Earth's figure."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from .row import SUBCLASS, Row, everywhere


def transmission(model: Any, x: Any) -> Any:
    """A model of astropy at a point, by its parameters."""
    return model(x[0], x[1], x[2])(1.3)


def distance(cosmology: Any, x: Any) -> Any:
    """A comoving distance by the Hubble constant and the density of matter."""
    return cosmology(H0=x[0], Om0=x[1]).comoving_distance(1.0).value


def separation(coordinate: Any, x: Any) -> Any:
    """The angle between a moving point of the sky and a fixed one."""
    units = importlib.import_module("astropy.units")
    return coordinate(x[0] * units.deg, x[1] * units.deg).separation(coordinate(10.0, 45.0, unit="deg")).value


def wind(units: Any, x: Any) -> Any:
    """A distance with units of pint, as MetPy has them."""
    return (x * units("m/s") * (2.0 * units("hour"))).to("km").magnitude


def metpy(function: Any, x: Any, *names: str) -> Any:
    """A function of MetPy of quantities."""
    units = importlib.import_module("metpy.units").units
    return function(*[v * units(name) for v, name in zip(x, names, strict=True)]).magnitude


ROWS = [
    # The sun and solar cells
    Row("pvlib.irradiance.beam_component", lambda f, x: f(20.0, 180.0, x[0], x[1], 800.0), [35.0, 170.0]),
    Row("pvlib.irradiance.aoi", lambda f, x: f(x[0], 180.0, x[1], 170.0), [20.0, 35.0]),
    Row("pvlib.irradiance.perez", lambda f, x: f(20.0, 180.0, x[0], x[1], 1400.0, 35.0, 170.0, 1.5), [100.0, 700.0]),
    Row("pvlib.irradiance.haydavies", lambda f, x: f(20.0, 180.0, x[0], x[1], 1400.0, 35.0, 170.0), [100.0, 700.0]),
    Row("pvlib.irradiance.erbs", lambda f, x: f(x[0], x[1], 120)["dni"], [500.0, 50.0]),
    Row("pvlib.irradiance.disc", lambda f, x: f(x[0], x[1], 120)["dni"], [500.0, 50.0]),
    Row("pvlib.atmosphere.get_relative_airmass", lambda f, x: f(x), 60.0),
    Row("pvlib.atmosphere.alt2pres", lambda f, x: f(x), 1200.0),
    Row("pvlib.atmosphere.gueymard94_pw", lambda f, x: f(x[0], x[1]), [20.0, 60.0]),
    Row("pvlib.clearsky.ineichen", lambda f, x: f(x[0], x[1], 3.0)["ghi"], [40.0, 1.3]),
    Row("pvlib.clearsky.simplified_solis", lambda f, x: f(x[0], aod700=x[1])["ghi"], [50.0, 0.1]),
    Row("pvlib.iam.physical", lambda f, x: f(x[0], n=x[1]), [40.0, 1.526]),
    Row("pvlib.iam.ashrae", lambda f, x: f(x[0], b=x[1]), [40.0, 0.05]),
    Row("pvlib.iam.martin_ruiz", lambda f, x: f(x[0], a_r=x[1]), [40.0, 0.16]),
    Row("pvlib.temperature.sapm_cell", lambda f, x: f(x[0], x[1], x[2], -3.47, -0.0594, 3.0), [900.0, 20.0, 5.0]),
    Row("pvlib.temperature.faiman", lambda f, x: f(x[0], x[1], x[2]), [900.0, 20.0, 5.0]),
    Row(
        "pvlib.pvsystem.calcparams_desoto",
        lambda f, x: f(x[0], x[1], 0.0025, 7.84, 5.11e-10, 370.0, 0.41, 2.47)[0],
        [800.0, 45.0],
    ),
    Row("pvlib.pvsystem.i_from_v", lambda f, x: f(x[0], x[1], 5e-10, 0.4, 370.0, 2.0), [20.0, 7.8]),
    Row("pvlib.pvsystem.v_from_i", lambda f, x: f(x[0], x[1], 5e-10, 0.4, 370.0, 2.0, method="newton"), [5.0, 7.8]),
    Row(
        "pvlib.pvsystem.singlediode",
        lambda f, x: f(x[0], 5e-10, x[1], 370.0, 2.0)["p_mp"],
        [7.8, 0.4],
        everywhere("scipy.optimize.elementwise has no traced form"),
    ),
    Row(
        "pvlib.inverter.sandia",
        lambda f, x: f(
            x,
            300.0,
            {
                "Paco": 300.0,
                "Pdco": 310.0,
                "Vdco": 40.0,
                "Pso": 2.0,
                "C0": -2e-5,
                "C1": -1e-5,
                "C2": 1e-3,
                "C3": 1e-3,
                "Pnt": 0.1,
            },
        ),
        38.0,
    ),
    Row("pvlib.solarposition.declination_spencer71", lambda f, x: f(x), 120.0),
    Row("pvlib.tools.cosd", lambda f, x: f(x), 35.0),
    # The sky
    Row("astropy.modeling.models.Gaussian1D", transmission, [2.0, 1.0, 0.7]),
    Row("astropy.modeling.models.Lorentz1D", transmission, [2.0, 1.0, 0.7]),
    Row("astropy.modeling.models.Voigt1D", lambda m, x: m(x[0], x[1], x[2], 0.4)(1.3), [1.0, 2.0, 0.7]),
    Row("astropy.modeling.models.PowerLaw1D", transmission, [2.0, 1.0, 0.7]),
    Row(
        "astropy.modeling.functional_models.Gaussian2D.evaluate",
        lambda m, x: m.evaluate(0.3, 0.4, x[0], x[1], x[2], 1.1, 0.9, 0.2),
        [1.5, 0.1, 0.2],
    ),
    Row("astropy.modeling.physical_models.NFW", lambda m, x: m.evaluate(m(), x, 1e14, 5.0, 0.5), 100.0, SUBCLASS),
    Row("astropy.cosmology.FlatLambdaCDM.comoving_distance", distance, [70.0, 0.3], SUBCLASS),
    Row("astropy.cosmology.FlatLambdaCDM.efunc", lambda c, x: c(H0=70.0, Om0=0.3).efunc(x), 0.5),
    Row("astropy.cosmology.FlatLambdaCDM.age", lambda c, x: c(H0=70.0, Om0=0.3).age(x).value, 0.5, SUBCLASS),
    Row("astropy.coordinates.SkyCoord", separation, [10.5, 41.2], SUBCLASS),
    Row("astropy.coordinates.angular_separation", lambda f, x: f(x[0], x[1], 0.3, 0.9), [0.1, 0.8]),
    Row("astropy.coordinates.spherical_to_cartesian", lambda f, x: f(2.0, x[0], x[1])[0].value, [0.3, 0.8], SUBCLASS),
    Row("astropy.units.Quantity.to", lambda q, x: q(x, "km").to("lyr").value, 3e12, SUBCLASS),
    Row("astropy.units.Quantity.__truediv__", lambda q, x: (q(x, "km") / q(2.0, "s")).to_value("m/s"), 3.0, SUBCLASS),
    Row("astropy.stats.biweight_location", lambda f, x: f(x), [1.1, 1.56, 0.9, 1.3, 4.0]),
    Row("astropy.stats.circmean", lambda f, x: f(x), [0.1, 0.5, 0.9]),
    Row("skyfield.functions.angle_between", lambda f, x: f(x, np.array([0.3, 1.0, -0.2])), [1.0, 0.2, 0.5]),
    Row("skyfield.earthlib.refraction", lambda f, x: f(x, 10.0, 1010.0), 12.0),
    Row("sgp4.ext.mag", lambda f, x: f(x), [1.0, 0.2, 0.5]),
    # The sea and the weather
    Row("seawater.dens0", lambda f, x: f(x[0], x[1]), [35.0, 12.0]),
    Row("seawater.svel", lambda f, x: f(x[0], x[1], 1000.0), [35.0, 12.0]),
    Row("gsw.rho", lambda f, x: f(x[0], x[1], 1000.0), [35.0, 12.0], everywhere("C code computes it")),
    Row("metpy.calc.saturation_vapor_pressure", lambda f, x: metpy(f, [x], "degC"), 20.0),
    Row("metpy.calc.potential_temperature", lambda f, x: metpy(f, x, "hPa", "K"), [850.0, 280.0]),
    Row("metpy.calc.dewpoint_from_relative_humidity", lambda f, x: metpy(f, x, "degC", ""), [20.0, 0.6]),
    Row("metpy.calc.wind_speed", lambda f, x: metpy(f, x, "m/s", "m/s"), [3.0, 4.0]),
    Row("metpy.calc.heat_index", lambda f, x: np.sum(metpy(f, x, "degF", "")), [95.0, 0.6]),
    Row("pint.UnitRegistry", lambda r, x: wind(r(), x), 5.0),
    # The Earth
    Row("pymap3d.geodetic2ecef", lambda f, x: f(x[0], x[1], 200.0)[0], [42.0, 82.0]),
    Row("pymap3d.ecef2geodetic", lambda f, x: f(x[0] * 1e6, x[1] * 1e6, x[2] * 1e6)[0], [0.66, -4.7, 4.2]),
    Row("pymap3d.geodetic2aer", lambda f, x: f(x[0], x[1], 1000.0, 42.0, 82.0, 200.0)[1], [42.1, 82.2]),
    Row("pymap3d.vincenty.vdist", lambda f, x: f(x[0], x[1], 43.0, 83.0)[0], [42.0, 82.0]),
    Row("geopy.distance.great_circle", lambda d, x: d((x[0], x[1]), (48.0, 11.0)).km, [52.0, 13.0]),
    Row("geopy.distance.geodesic", lambda d, x: d((x[0], x[1]), (48.0, 11.0)).km, [52.0, 13.0]),
    Row(
        "geographiclib.geodesic.Geodesic.Inverse",
        lambda g, x: g.WGS84.Inverse(x[0], x[1], 48.0, 11.0)["s12"],
        [52.0, 13.0],
    ),
]
