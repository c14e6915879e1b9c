"""Schedulers that multiply learning rates by factors of the step, and decay them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ....base.source import at_line, user_line
from .base import LRScheduler


class _ByFunctions(LRScheduler):
    """Schedulers by a function of the step for each group, which state dictionaries hold if it is an object."""

    _kept_out = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(getattr(optimizer, "param_groups", [()]))
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(
                f"{type(self).__name__} takes a function, or one for each of {count} groups, not "
                f"{len(self.lr_lambdas)}{at_line(user_line())}"
            )
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"lr_lambda is a function of the number of the step, not {f!r}{at_line(user_line())}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        held = [None if hasattr(f, "__code__") else dict(vars(f)) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": held}

    def _load(self, state: Mapping[str, Any]) -> None:
        given = dict(state)
        for f, held in zip(self.lr_lambdas, given.pop("lr_lambdas"), strict=True):
            if held is not None:
                vars(f).update(held)
        super()._load(given)


class LambdaLR(_ByFunctions):
    """The first rate times a function of the step.

    Args:
        optimizer: an optimizer of `nn.optim`.
        lr_lambda: a function of the number of the step that returns a factor, or a list of one for each group.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[float]:
        return [lr * float(f(self.last_epoch)) for lr, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunctions):
    """The last rate times a function of the step.

    Args:
        optimizer: an optimizer of `nn.optim`.
        lr_lambda: a function of the number of the step that returns a factor, or a list of one for each group.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.5)
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[float]:
        if self.last_epoch <= 0:
            return self.present()
        return [lr * float(f(self.last_epoch)) for lr, f in zip(self.present(), self.lr_lambdas, strict=True)]


class _ByFactor(LRScheduler):
    """Schedulers whose every step multiplies all rates by one factor."""

    def _factor(self, step: int) -> float:
        """By what a step multiplies the rates."""
        raise NotImplementedError

    def _product(self, step: int) -> float:
        """By what a step and all before it have multiplied them."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        factor = self._factor(self.last_epoch)
        return [lr * factor for lr in self.present()]

    def closed_form(self) -> list[float]:
        product = self._product(self.last_epoch)
        return [lr * product for lr in self.base_lrs]


class StepLR(_ByFactor):
    """Multiply the rates by `gamma` after every `step_size` steps.

    Args:
        optimizer: an optimizer of `nn.optim`.
        step_size: number of steps.
        gamma: the factor.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> [scheduler.step() or scheduler.get_last_lr()[0] for _ in range(4)]
        [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        _require_positive("step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma if step and step % self.step_size == 0 else 1.0

    def _product(self, step: int) -> float:
        return float(self.gamma ** (step // self.step_size))


class MultiStepLR(_ByFactor):
    """Multiply the rates by `gamma` at some steps.

    Args:
        optimizer: an optimizer of `nn.optim`.
        milestones: numbers of steps.
        gamma: the factor.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
        >>> [scheduler.step() or scheduler.get_last_lr()[0] for _ in range(4)]
        [0.5, 0.5, 0.25, 0.25]
    """

    def __init__(self, optimizer: Any, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return float(self.gamma ** self.milestones[step])

    def _product(self, step: int) -> float:
        return float(self.gamma ** sum(count for at, count in self.milestones.items() if at <= step))


class ConstantLR(_ByFactor):
    """Multiply the rates by a factor until a step.

    Args:
        optimizer: an optimizer of `nn.optim`.
        factor: the factor.
        total_iters: the step from which rates are as they were.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> [scheduler.get_last_lr()[0], *(scheduler.step() or scheduler.get_last_lr()[0] for _ in range(2))]
        [0.5, 0.5, 1.0]
    """

    def __init__(self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"factor must be between 0 and 1, not {factor}{at_line(user_line())}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        if step == 0:
            return self.factor
        return 1 / self.factor if step == self.total_iters else 1.0

    def _product(self, step: int) -> float:
        return self.factor if step < self.total_iters else 1.0


class LinearLR(_ByFactor):
    """Multiply the rates by a factor that changes linearly, as in a warm-up.

    Args:
        optimizer: an optimizer of `nn.optim`.
        start_factor: the first factor.
        end_factor: the last one.
        total_iters: the number of steps in between.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
        >>> [scheduler.get_last_lr()[0], *(scheduler.step() or scheduler.get_last_lr()[0] for _ in range(3))]
        [0.25, 0.5, 0.75, 1.0]
    """

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(
                f"start_factor is above 0, and both factors are at most 1, not {start_factor} and {end_factor}"
                + at_line(user_line())
            )
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        if step == 0:
            return self.start_factor
        return 1.0 if step > self.total_iters else self._product(step) / self._product(step - 1)

    def _product(self, step: int) -> float:
        part = min(self.total_iters, step) / self.total_iters if self.total_iters else 1.0
        return self.start_factor + (self.end_factor - self.start_factor) * part


class ExponentialLR(_ByFactor):
    """Multiply the rates by `gamma` in each step.

    Args:
        optimizer: an optimizer of `nn.optim`.
        gamma: the factor.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> [scheduler.step() or scheduler.get_last_lr()[0] for _ in range(2)]
        [0.5, 0.25]
    """

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma if step else 1.0

    def _product(self, step: int) -> float:
        return float(self.gamma**step)


class PolynomialLR(_ByFactor):
    """Lower the rates to zero as a power of the steps that are left.

    Args:
        optimizer: an optimizer of `nn.optim`.
        total_iters: number of steps.
        power: the power.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> [scheduler.step() or scheduler.get_last_lr()[0] for _ in range(2)]
        [0.75, 0.5]
    """

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        _require_positive("total_iters", total_iters)
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        if step == 0 or step > self.total_iters:
            return 1.0
        return float(((self.total_iters - step) / (self.total_iters - step + 1)) ** self.power)

    def _product(self, step: int) -> float:
        return float((1 - min(step, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Lower the rates along half a period of a cosine, and raise them along the next (Loshchilov and Hutter, 2017).

    Args:
        optimizer: an optimizer of `nn.optim`.
        T_max: number of steps of half a period.
        eta_min: the lowest rate.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> [round(scheduler.step() or scheduler.get_last_lr()[0], 6) for _ in range(2)]
        [0.5, 0.0]
    """

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        _require_positive("T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, step: int) -> float:
        return 1 + math.cos(math.pi * step / self.T_max)

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step == 0:
            return self.present()
        if self._is_first:
            return self.closed_form()
        if (step - 1) % (2 * self.T_max) == self.T_max:
            # The rate before is the lowest one, of which no multiple leads up again.
            rise = (2 - self._height(1)) / 2
            return [now + (lr - self.eta_min) * rise for now, lr in zip(self.present(), self.base_lrs, strict=True)]
        ratio = self._height(step) / self._height(step - 1)
        return [self.eta_min + (now - self.eta_min) * ratio for now in self.present()]

    def closed_form(self) -> list[float]:
        return [self.eta_min + (lr - self.eta_min) * self._height(self.last_epoch) / 2 for lr in self.base_lrs]


def _require_positive(name: str, value: Any) -> None:
    if not value > 0:
        raise ValueError(f"{name} must be a positive number of steps, not {value!r}{at_line(user_line())}")
