"""The rules of optimizers: what becomes of one parameter in a step.

Formulas and names of states are those of torch's documentation; papers are named where the optimizers are defined.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from .updates import Rule


def _with_decay(g: Any, p: Any, h: SimpleNamespace) -> Any:
    """The gradient of the loss with half the squared norm of the parameter, times the weight decay, added."""
    return g + h.weight_decay * p if "weight_decay" in h.used else g


def _shrunk(p: Any, h: SimpleNamespace) -> Any:
    """A parameter after weight decay that is decoupled from the gradient."""
    return p * (1 - h.lr * h.weight_decay) if "weight_decay" in h.used else p


def _decayed(p: Any, g: Any, h: SimpleNamespace) -> tuple[Any, Any]:
    """Parameter and gradient after weight decay, decoupled or not."""
    return (_shrunk(p, h), g) if h.decoupled_weight_decay else (p, _with_decay(g, p, h))


def _moments(s: dict[str, Any], g: Any, h: SimpleNamespace) -> tuple[Any, Any]:
    """The running averages of gradients and of their squares, which are kept."""
    first, second = h.betas
    s["exp_avg"] = _toward(s["exp_avg"], g, 1 - first)
    s["exp_avg_sq"] = _toward(s["exp_avg_sq"], g * g, 1 - second)
    return s["exp_avg"], s["exp_avg_sq"]


def _toward(x: Any, target: Any, weight: Any) -> Any:
    return x + weight * (target - x)


def _root(x: Any) -> Any:
    """The square root, with derivative 0 at 0: where a gradient is zero, an update has a derivative all the same."""
    if x.dtype.itemsize < 4:
        return np.where(x > 0, np.sqrt(x), 0)
    # The root of the smallest normal number is far less than any eps.
    return np.sqrt(np.maximum(x, float(np.finfo(x.dtype).tiny)))


class SGDRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if "momentum" in used else ()

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        return {"fresh": np.where(s["step"] == 1, 1.0, 1 - h.dampening)} if "dampening" in h.used else {}

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        g = _with_decay(g, p, h)
        if "momentum" in h.used:
            buffer = h.momentum * s["momentum_buffer"] + (h.fresh * g if "dampening" in h.used else g)
            s["momentum_buffer"] = buffer
            g = g + h.momentum * buffer if h.nesterov else buffer
        return p - h.lr * g


class ASGDRule(Rule):
    counters = ("step", "eta", "mu")

    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("ax",)

    @staticmethod
    def first_counter(name: str) -> float:
        return 1.0 if name == "mu" else 0.0

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        step, eta, mu = s["step"], np.where(s["step"] == 1, h.lr, s["eta"]), s["mu"]
        s["eta"] = h.lr / (1 + h.lambd * h.lr * step) ** h.alpha
        s["mu"] = 1 / np.maximum(1.0, step - h.t0)
        return {"eta": eta, "mu": mu}

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        p = p * (1 - h.lambd * h.eta) - h.eta * _with_decay(g, p, h)
        s["ax"] = _toward(s["ax"], p, h.mu)
        return p


class RpropRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size")

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        return {"is_first": s["step"] == 1}

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        (shrink, grow), (least, most) = h.etas, h.step_sizes
        agreement = g * s["prev"]
        step = np.where(h.is_first, h.lr, s["step_size"])
        step = step * np.where(agreement > 0, grow, np.where(agreement < 0, shrink, 1.0))
        step = np.where(step < least, least, np.where(step > most, most, step))
        g = np.where(agreement < 0, 0.0, g)
        s["prev"], s["step_size"] = g, step
        return p - np.sign(g) * step


class AdagradRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    @staticmethod
    def first_slot(slot: str, numbers: dict[str, Any]) -> float:
        return float(numbers["initial_accumulator_value"])

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        return {"rate": h.lr / (1 + (s["step"] - 1) * h.lr_decay)} if "lr_decay" in h.used else {}

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        g = _with_decay(g, p, h)
        s["sum"] = s["sum"] + g * g
        return p - (h.rate if "lr_decay" in h.used else h.lr) * g / (_root(s["sum"]) + h.eps)


class AdadeltaRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        g = _with_decay(g, p, h)
        s["square_avg"] = _toward(s["square_avg"], g * g, 1 - h.rho)
        change = np.sqrt(s["acc_delta"] + h.eps) / np.sqrt(s["square_avg"] + h.eps) * g
        s["acc_delta"] = _toward(s["acc_delta"], change * change, 1 - h.rho)
        return p - h.lr * change


class RMSpropRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        averages = ("square_avg", "grad_avg") if options["centered"] else ("square_avg",)
        return (*averages, "momentum_buffer") if "momentum" in used else averages

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        g = _with_decay(g, p, h)
        squares = s["square_avg"] = _toward(s["square_avg"], g * g, 1 - h.alpha)
        if h.centered:
            mean = s["grad_avg"] = _toward(s["grad_avg"], g, 1 - h.alpha)
            squares = squares - mean * mean
        g = g / (_root(squares) + h.eps)
        if "momentum" in h.used:
            g = s["momentum_buffer"] = h.momentum * s["momentum_buffer"] + g
        return p - h.lr * g


class AdamRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        moments = ("exp_avg", "exp_avg_sq")
        return (*moments, "max_exp_avg_sq") if options["amsgrad"] else moments

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        (first, second), step = h.betas, s["step"]
        return {"rate": h.lr / (1 - first**step), "root": (1 - second**step) ** 0.5}

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        p, g = _decayed(p, g, h)
        mean, squares = _moments(s, g, h)
        if h.amsgrad:
            squares = s["max_exp_avg_sq"] = np.maximum(s["max_exp_avg_sq"], squares)
        return p - h.rate * mean / (_root(squares) / h.root + h.eps)


class AdamaxRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        return {"rate": h.lr / (1 - h.betas[0] ** s["step"])}

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        g = _with_decay(g, p, h)
        s["exp_avg"] = _toward(s["exp_avg"], g, 1 - h.betas[0])
        s["exp_inf"] = np.maximum(h.betas[1] * s["exp_inf"], np.abs(g) + h.eps)
        return p - h.rate * s["exp_avg"] / s["exp_inf"]


class NAdamRule(Rule):
    counters = ("step", "mu_product")

    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    @staticmethod
    def first_counter(name: str) -> float:
        return 1.0 if name == "mu_product" else 0.0

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        (first, second), step = h.betas, s["step"]
        now, coming = [first * (1 - 0.5 * 0.96 ** (t * h.momentum_decay)) for t in (step, step + 1)]
        product = s["mu_product"] = s["mu_product"] * now
        return {
            "of_gradient": h.lr * (1 - now) / (1 - product),
            "of_mean": h.lr * coming / (1 - product * coming),
            "correction": 1 - second**step,
        }

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        p, g = _decayed(p, g, h)
        mean, squares = _moments(s, g, h)
        size = _root(squares / h.correction) + h.eps
        return p - (h.of_gradient * g + h.of_mean * mean) / size


class RAdamRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    @staticmethod
    def advance(s: dict[str, Any], h: SimpleNamespace) -> dict[str, Any]:
        (first, second), step = h.betas, s["step"]
        most, power = 2 / (1 - second) - 1, second**step
        length = most - 2 * step * power / (1 - power)
        is_long = length > 5
        ratio = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        return {
            "rate": h.lr / (1 - first**step),
            "is_long": is_long,
            "factor": np.where(is_long, ratio * (1 - power), 1.0) ** 0.5,
        }

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        p, g = _decayed(p, g, h)
        mean, squares = _moments(s, g, h)
        adapted = h.factor / (_root(squares) + h.eps)
        return p - h.rate * mean * np.where(h.is_long, adapted, 1.0)


class LionRule(Rule):
    @staticmethod
    def slots(used: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg",)

    @staticmethod
    def update(p: Any, g: Any, s: dict[str, Any], h: SimpleNamespace) -> Any:
        direction = np.sign(_toward(s["exp_avg"], g, 1 - h.betas[0]))
        s["exp_avg"] = _toward(s["exp_avg"], g, 1 - h.betas[1])
        return _shrunk(p, h) - h.lr * direction
