"""What somebody writes for libraries whose arrays cannot be assigned to, or that lack a function."""

from __future__ import annotations

import importlib
from typing import Any


def kalman_filter(np: Any, log_noise: Any, positions: Any, step: Any) -> Any:
    """The states are rebound in place of being stored."""
    noise = np.exp(2 * log_noise)
    transition = np.array([[1.0, step], [0.0, 1.0]])
    diffusion = noise[0] * np.array([[step**3 / 3, step**2 / 2], [step**2 / 2, step]])
    mean, covariance, total = np.zeros(2), np.diag(np.array([10.0, 10.0])), 0.0
    for i in range(len(positions)):
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + diffusion
        surprise = positions[i] - mean[0]
        variance = covariance[0, 0] + noise[1]
        gain = covariance[:, 0] / variance
        mean = mean + gain * surprise
        covariance = covariance - np.outer(gain, covariance[0])
        total = total - 0.5 * (np.log(2 * np.pi * variance) + surprise**2 / variance)
    return total


def heat_equation(np: Any, conductivity: Any, start: Any, measured: Any) -> Any:
    """Each step makes a new rod."""
    rod = start
    for _ in range(50):
        flow = conductivity * (rod[1:] - rod[:-1])
        rod = np.concatenate([start[:1], rod[1:-1] + flow[1:] - flow[:-1], start[-1:]])
    return np.sum((rod - measured) ** 2)


def truss(np: Any, stiffness: Any, load: Any) -> Any:
    """The system is a product with constant selections of the degrees of freedom of each element."""
    element = np.array(
        [[12.0, 6.0, -12.0, 6.0], [6.0, 4.0, -6.0, 2.0], [-12.0, -6.0, 12.0, -6.0], [6.0, 2.0, -6.0, 4.0]]
    )
    count = len(stiffness)
    size = 2 * count + 2
    selections = np.array([[[float(j == 2 * i + k) for j in range(size)] for k in range(4)] for i in range(count)])
    system = np.einsum("e,eki,kl,elj->ij", stiffness, selections, element, selections)
    forces = np.concatenate([np.zeros(size - 4), np.array([1.0, 0.0])]) * load
    return forces @ np.linalg.solve(system[2:, 2:], forces)


def option_price(np: Any, market: Any, strikes: Any, maturities: Any) -> Any:
    """The normal distribution is that of the error function."""
    erf = importlib.import_module(f"{np.__name__.partition('.')[0]}.scipy.special").erf
    spot, volatility, rate = market
    spread = volatility * np.sqrt(maturities)
    forward = np.log(spot / strikes) + rate * maturities
    upper = forward / spread + 0.5 * spread

    def distribution(x: Any) -> Any:
        return 0.5 * (1.0 + erf(x / np.sqrt(2.0)))

    return np.sum(spot * distribution(upper) - strikes * np.exp(-rate * maturities) * distribution(upper - spread))


REWRITES = {
    "heat_equation": heat_equation, "kalman_filter": kalman_filter, "option_price": option_price, "truss": truss,
}  # fmt: skip
