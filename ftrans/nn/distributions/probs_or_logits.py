"""Probabilities, of one event or of several classes, that are given as such or by their logits."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...base.source import at_line, user_line
from ...scipy.special import expit, log_softmax, softmax
from .constraints import Constraint, real, real_vector, unit_interval
from .distribution import Distribution
from .numbers import eps, is_number, operands

__all__: list[str] = []

weights = Constraint(
    "a vector of weights that are not negative, and not all 0",
    lambda x: np.all(x >= 0, axis=-1) & (np.sum(x, axis=-1) > 0),
    1,
)


class ProbsOrLogits(Distribution):
    """Distributions with a parameter that is given by one of two names; the other one is computed."""

    def _set_either(self, validate_args: bool | None, probs: Any, logits: Any, **more: Any) -> None:
        if (probs is None) is (logits is None):
            given = "neither of them" if probs is None else "both"
            raise ValueError(
                f"{type(self).__name__} takes either probs or logits, and was given {given}; logits are what a network "
                f"computes: {type(self).__name__}(logits=...){at_line(user_line())}"
            )
        self._set(validate_args, **more, **({"_logits": logits} if probs is None else {"_probs": probs}))

    def _parameters(self, what: str = "") -> list[Any]:
        # Densities are computed from logits, most else from both.
        return [getattr(self, name) for name in self.arg_constraints if what != "log_prob" or name != "probs"]

    @property
    def probs(self) -> Any:
        """The probabilities."""
        held = vars(self)
        return _weak(self._to_probs, held["_logits"]) if "_logits" in held else self._kept_probs(held["_probs"])

    @property
    def logits(self) -> Any:
        """The logits."""
        held = vars(self)
        return self._kept_logits(held["_logits"]) if "_logits" in held else _weak(self._to_logits, held["_probs"])

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return np.shape(self.probs)

    def _kept_probs(self, probs: Any) -> Any:
        return probs

    def _kept_logits(self, logits: Any) -> Any:
        return logits

    def _to_probs(self, logits: Any) -> Any:
        raise NotImplementedError(type(self))

    def _to_logits(self, probs: Any) -> Any:
        raise NotImplementedError(type(self))


def _weak(function: Any, x: Any) -> Any:
    """A function of an array, or of a number of Python, which remains one."""
    (y,) = operands([x])
    return float(function(y)) if is_number(x) else function(y)


def _inside(p: Any) -> Any:
    """Probabilities that are neither 0 nor 1, so that their logarithms are finite."""
    return np.clip(p, eps(p), 1 - eps(p))


class BinaryProbabilities(ProbsOrLogits):
    """Distributions with the probability of an event; formulas take `probs` and `logits` last."""

    arg_constraints: ClassVar = {"probs": unit_interval, "logits": real}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_either(validate_args, probs, logits)

    def _to_probs(self, logits: Any) -> Any:
        return expit(logits)

    def _to_logits(self, probs: Any) -> Any:
        p = _inside(probs)
        return np.log(p) - np.log1p(-p)


class ClassProbabilities(ProbsOrLogits):
    """Distributions with the probabilities of classes, along the last axis; formulas take both forms, normalized."""

    arg_constraints: ClassVar = {"probs": weights, "logits": real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_either(validate_args, probs, logits)

    @property
    def num_events(self) -> int:
        """The number of classes."""
        return int(next(iter(self._given().values())).shape[-1])

    def _parameters(self, what: str = "") -> list[Any]:
        if what == "log_prob" or "_probs" not in vars(self):
            return super()._parameters(what)
        # Both forms take the weights divided by their sum: once.
        probs = self.probs
        both = {"probs": probs, "logits": np.log(_inside(probs))}
        return [both[name] if name in both else getattr(self, name) for name in self.arg_constraints]

    def _kept_probs(self, probs: Any) -> Any:
        (p,) = operands([probs])
        return p / np.sum(p, axis=-1, keepdims=True)

    def _kept_logits(self, logits: Any) -> Any:
        (x,) = operands([logits])
        return log_softmax(x, axis=-1)

    def _to_probs(self, logits: Any) -> Any:
        return softmax(logits, axis=-1)

    def _to_logits(self, probs: Any) -> Any:
        return np.log(_inside(self._kept_probs(probs)))
