"""Functions of packages for fluids, heat, chemistry and control."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .row import Row, everywhere

MOLE_FRACTIONS = [0.4, 0.35, 0.25]
BOILING_POINTS, CRITICAL_TEMPERATURES = [230.0, 270.0, 310.0], [370.0, 425.0, 470.0]
CRITICAL_PRESSURES, ACENTRIC_FACTORS = [42e5, 38e5, 34e5], [0.15, 0.2, 0.25]


def peng_robinson(eos: Any, x: Any) -> Any:
    """The molar volume of a gas by temperature and pressure."""
    return eos(Tc=507.6, Pc=3025000.0, omega=0.2975, T=x[0], P=x[1]).V_l


def step_response(respond: Any, x: Any) -> Any:
    """A damped oscillator's response to a step, at the last time."""
    system = importlib.import_module("control").tf([1.0], [1.0, x, 4.0])
    return respond(system, np.linspace(0.0, 2.0, 9)).outputs[-1]


def in_si(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A call of psychrolib in its metric units."""

    def called(f: Any, x: Any) -> Any:
        psychrolib = importlib.import_module("psychrolib")
        psychrolib.SetUnitSystem(psychrolib.SI)
        return call(f, x)

    return called


ROWS = [
    # Fluids
    Row("fluids.friction_factor", lambda f, x: f(Re=x, eD=1e-4), 1e5),
    Row("fluids.friction.Colebrook", lambda f, x: f(x[0], x[1]), [1e5, 1e-4]),
    Row("fluids.friction.Clamond", lambda f, x: f(x[0], x[1]), [1e5, 1e-4]),
    Row("fluids.friction.Haaland", lambda f, x: f(x[0], x[1]), [1e5, 1e-4]),
    Row("fluids.core.Reynolds", lambda f, x: f(V=x[0], D=x[1], rho=x[2], mu=x[3]), [2.5, 0.25, 1.1613, 1.9e-5]),
    Row("fluids.core.Prandtl", lambda f, x: f(Cp=x[0], k=x[1], nu=x[2], rho=x[3]), [1637.0, 0.01, 6.4e-7, 7.1]),
    Row("fluids.core.dP_from_K", lambda f, x: f(K=x[0], rho=x[1], V=x[2]), [10.0, 1000.0, 3.0]),
    Row("fluids.drag.drag_sphere", lambda f, x: f(x), 200.0),
    Row("fluids.drag.v_terminal", lambda f, x: f(D=x[0], rhop=x[1], rho=1.2, mu=1.78e-5), [7e-5, 2600.0]),
    Row("fluids.fittings.contraction_sharp", lambda f, x: f(Di1=x[0], Di2=x[1]), [1.0, 0.4]),
    Row("fluids.fittings.bend_rounded", lambda f, x: f(Di=x[0], angle=x[1], fd=0.01, bend_diameters=5.0), [4.0, 30.0]),
    Row(
        "fluids.flow_meter.C_Reader_Harris_Gallagher",
        lambda f, x: f(D=x[0], Do=x[1], rho=1.165, mu=1.85e-5, m=0.12, taps="flange"),
        [0.07391, 0.0222],
    ),
    Row(
        "fluids.compressible.isothermal_gas",
        lambda f, x: f(rho=x[0], fd=x[1], P1=1e6, P2=9e5, L=1000.0, D=0.5),
        [11.3, 0.00185],
    ),
    Row(
        "fluids.compressible.Panhandle_A",
        lambda f, x: f(D=x[0], P1=x[1], P2=2e6, L=160e3, SG=0.693, Tavg=277.15),
        [0.34, 9e6],
    ),
    Row(
        "fluids.two_phase.Lockhart_Martinelli",
        lambda f, x: f(m=0.6, x=x[0], rhol=915.0, rhog=2.67, mul=180e-6, mug=14e-6, D=x[1], L=1.0),
        [0.1, 0.05],
    ),
    Row(
        "fluids.two_phase.Friedel",
        lambda f, x: f(
            m=x[0], x=x[1], rhol=950.0, rhog=1.4, mul=1e-3, mug=1e-5, sigma=0.0487, D=0.05, roughness=0.0, L=1.0
        ),
        [0.6, 0.1],
    ),
    Row("fluids.packed_bed.Ergun", lambda f, x: f(dp=x[0], voidage=x[1], vs=1e-3, rho=1e3, mu=1e-3), [8e-4, 0.4]),
    Row("fluids.geometry.V_horiz_conical", lambda f, x: f(D=x[0], L=4.0, a=x[1], h=0.4), [1.0, 0.5]),
    Row("fluids.geometry.TANK", lambda f, x: f(D=x, L=10.0, horizontal=False).V_total, 2.5),
    Row("fluids.atmosphere.ATMOSPHERE_1976", lambda f, x: f(x).P, 5000.0),
    # Chemicals and thermo
    Row("chemicals.Antoine", lambda f, x: f(x[0], A=8.7687, B=395.744, C=-6.469), [100.0]),
    Row(
        "chemicals.vapor_pressure.Wagner",
        lambda f, x: f(x, 190.53, 4596420.0, a=-6.00435, b=1.1885, c=-0.834082, d=-1.22833),
        100.0,
    ),
    Row("chemicals.vapor_pressure.Lee_Kesler", lambda f, x: f(x, 347.2, 4.9e6, 0.193), 320.0),
    Row("chemicals.heat_capacity.Poling", lambda f, x: f(x, 4.568, -8.975e-3, 3.631e-5, -3.407e-8, 1.091e-11), 300.0),
    Row("chemicals.heat_capacity.Shomate", lambda f, x: f(x, 30.09, 6.832e-3, 6.793e-6, -2.534e-9, 82139.0), 700.0),
    Row("chemicals.viscosity.viscosity_index", lambda f, x: f(x[0], x[1]), [73.3e-6, 8.86e-6]),
    Row("chemicals.viscosity.Lucas", lambda f, x: f(x[0], x[1], 572.2, 34.7e5, 0.236, 0.0, 0.00068), [300.0, 5e7]),
    Row("chemicals.volume.Rackett", lambda f, x: f(x, 369.83, 4248000.0, 0.2763), 272.0),
    Row(
        "chemicals.rachford_rice.Rachford_Rice_solution",
        lambda f, x: f(zs=[0.5, 0.3, 0.2], Ks=[x[0], x[1], x[2]])[0],
        [1.685, 0.742, 0.532],
    ),
    Row(
        "chemicals.rachford_rice.flash_inner_loop",
        lambda f, x: f(zs=[0.5, 0.3, 0.2], Ks=[x[0], x[1], x[2]])[0],
        [1.685, 0.742, 0.532],
    ),
    Row("chemicals.virial.BVirial_Pitzer_Curl", lambda f, x: f(x, 510.0, 38e5, 0.193), 400.0),
    Row("chemicals.interface.Brock_Bird", lambda f, x: f(x, 404.75, 633.0, 4530000.0), 293.15),
    Row("chemicals.thermal_conductivity.Sheffy_Johnson", lambda f, x: f(x, 47.0, 280.0), 300.0),
    Row("chemicals.iapws.iapws95_P", lambda f, x: f(x[0], x[1]), [647.1, 358.0]),
    Row("chemicals.utils.mixing_logarithmic", lambda f, x: f([x[0], x[1]], [1.1, 2.2]), [0.1, 0.9]),
    Row("thermo.PR", peng_robinson, [299.0, 1e6]),
    Row("thermo.wilson.Wilson_gammas", lambda f, x: f([x[0], x[1]], [[1.0, 0.154], [0.888, 1.0]])[0], [0.252, 0.748]),
    Row(
        "thermo.nrtl.NRTL_gammas",
        lambda f, x: f(xs=[x[0], x[1]], taus=[[0.0, 0.1759], [0.7991, 0.0]], alphas=[[0.0, 0.2937], [0.2937, 0.0]])[1],
        [0.252, 0.748],
    ),
    Row(
        "thermo.uniquac.UNIQUAC_gammas",
        lambda f, x: f(xs=[x[0], x[1]], rs=[2.1055, 0.92], qs=[1.972, 1.4], taus=[[1.0, 1.0919], [0.3784, 1.0]])[0],
        [0.252, 0.748],
    ),
    Row(
        "thermo.eos_mix.PRMIX",
        lambda f, x: (
            f(
                Tcs=[126.1, 190.6],
                Pcs=[33.94e5, 46.04e5],
                omegas=[0.04, 0.011],
                zs=[0.5, 0.5],
                T=x,
                P=40e5,
                kijs=[[0.0, 0.0], [0.0, 0.0]],
            ).fugacities_g[0]
            * 1e-5
        ),
        215.0,
    ),
    # Heat
    Row("ht.turbulent_Dittus_Boelter", lambda f, x: f(Re=x[0], Pr=x[1]), [1e5, 1.2]),
    Row("ht.turbulent_Gnielinski", lambda f, x: f(Re=x[0], Pr=x[1], fd=x[2]), [1e5, 1.2, 0.0185]),
    Row("ht.conv_free_immersed.Nu_vertical_plate_Churchill", lambda f, x: f(x[0], x[1]), [0.69, 2.63e9]),
    Row("ht.hx.effectiveness_from_NTU", lambda f, x: f(NTU=x[0], Cr=x[1], subtype="crossflow"), [5.0, 0.7]),
    Row("ht.core.LMTD", lambda f, x: f(x[0], x[1], x[2], x[3]), [100.0, 60.0, 30.0, 40.2]),
    Row(
        "ht.boiling_nucleic.Rohsenow",
        lambda f, x: f(
            rhol=957.854,
            rhog=0.595593,
            mul=2.79e-4,
            kl=0.680,
            Cpl=4217.0,
            Hvap=2.257e6,
            sigma=x[0],
            Te=x[1],
            Csf=0.011,
            n=1.26,
        ),
        [0.0589, 4.9],
    ),
    # Steam and air
    Row("iapws.iapws97._Region1", lambda f, x: f(x[0], x[1])["h"], [300.0, 3.0]),
    Row("iapws.iapws97._PSat_T", lambda f, x: f(x), 400.0),
    Row("iapws._iapws._Viscosity", lambda f, x: f(x[0], x[1]) * 1e6, [998.0, 298.15]),
    Row("psychrolib.GetSatVapPres", in_si(lambda f, x: f(x)), 20.0),
    Row("psychrolib.GetHumRatioFromRelHum", in_si(lambda f, x: f(x[0], x[1], 101325.0)), [25.0, 0.8]),
    Row("psychrolib.GetTWetBulbFromRelHum", in_si(lambda f, x: f(x[0], x[1], 101325.0)), [25.0, 0.5]),
    Row("psychrolib.GetMoistAirEnthalpy", in_si(lambda f, x: f(x[0], x[1])), [30.0, 0.02]),
    # Control
    Row("control.TransferFunction", lambda f, x: abs(f([1.0, x[0]], [1.0, x[1], 4.0])(1.0j)), [0.5, 1.2]),
    Row("control.step_response", step_response, 0.8, everywhere("scipy.signal.tf2ss has no traced form")),
    Row(
        "control.lqr",
        lambda f, x: np.sum(
            f(np.array([[0.0, 1.0], [-1.0, -0.5]]), np.array([[0.0], [1.0]]), np.eye(2) * x, np.eye(1))[0]
        ),
        2.0,
    ),
    Row(
        "control.StateSpace.dcgain",
        lambda f, x: f(np.array([[-1.0, 0.5], [0.0, -2.0]]) * x, [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]]).dcgain(),
        1.5,
    ),
]
