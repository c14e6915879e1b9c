"""Schedulers that raise and lower learning rates again, some of them momentum with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ....base.source import at_line, user_line
from ....base.type_questions import is_plain
from .base import LRScheduler, require_groups, require_host


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lower the rates along half a period of a cosine, and begin again (Loshchilov and Hutter, arXiv:1608.03983).

    Args:
        optimizer: an optimizer of `nn.optim`.
        T_0: number of steps until the first restart.
        T_mult: by which each next period is longer, an integer.
        eta_min: the lowest rate.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> [round(scheduler.step() or scheduler.get_last_lr()[0], 6) for _ in range(3)]
        [0.5, 1.0, 0.5]
    """

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if value < 1 or value != int(value):
                raise ValueError(f"{name} must be a positive integer, not {value!r}{at_line(user_line())}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i: float = T_0
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next step.

        Args:
            epoch: the number of the step, if it does not follow the last one; may be a fraction.
        """
        require_host(type(self).__name__)
        if epoch is None and self.last_epoch >= 0:
            self.last_epoch += 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        else:
            at: float = 0 if epoch is None else epoch
            if at < 0:
                raise ValueError(f"epoch must not be negative, but is {at}{at_line(user_line())}")
            self.T_i = self.T_0
            if at >= self.T_0 and self.T_mult > 1:
                period = int(math.log(at / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                at -= self.T_0 * (self.T_mult**period - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**period
            self.T_cur = at % self.T_0 if self.T_mult == 1 else at
            self.last_epoch = math.floor(0 if epoch is None else epoch)
        self.set(self.get_lr())

    def get_lr(self) -> list[float]:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]


class CyclicLR(LRScheduler):
    """Raise and lower the rates between two values in turn (Smith, arXiv:1506.01186).

    Args:
        optimizer: an optimizer of `nn.optim`.
        base_lr: the lowest rate, or one for each group.
        max_lr: the highest rate of the first cycle, or one for each group.
        step_size_up: number of steps upwards.
        step_size_down: number of steps downwards; the same by default.
        mode: "triangular"; "triangular2", where each cycle is half as high as the last; or "exp_range", where each step
            lowers the cycle by the factor `gamma`.
        gamma: that factor.
        scale_fn: a function in place of `mode`, which returns the height of a cycle.
        scale_mode: whether its argument is the number of the "cycle", from 1, or of the step ("iterations").
        cycle_momentum: whether the momentum, or the first of `betas`, goes the other way.
        base_momentum: its lowest value, or one for each group.
        max_momentum: its highest value, or one for each group.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0, momentum=0.9)
        >>> scheduler = nn.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2)
        >>> [scheduler.step() or scheduler.get_last_lr()[0] for _ in range(4)]
        [0.5, 1.0, 0.5, 0.0]
    """

    _kept_out = ("optimizer", "scale_fn")

    def __init__(
        self,
        optimizer: Any,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        require_groups(optimizer, "CyclicLR")
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"mode is 'triangular', 'triangular2' or 'exp_range', or give a scale_fn; given was {mode!r}"
                + at_line(user_line())
            )
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, by_group(optimizer, "base_lr", base_lr), strict=True):
                group["lr"] = rate
        self.max_lrs = by_group(optimizer, "max_lr", max_lr)
        self.step_size_up = float(step_size_up)
        self.total_size = self.step_size_up + float(step_size_up if step_size_down is None else step_size_down)
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            require_momentum(optimizer, "CyclicLR")
            self.base_momentums = by_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = by_group(optimizer, "max_momentum", max_momentum)
        super().__init__(optimizer, last_epoch)
        # An optimizer that had a scheduler before knows other rates.
        self.base_lrs = by_group(optimizer, "base_lr", base_lr)

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return float(self.scale_fn(x))
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[float]:
        position = self.last_epoch / self.total_size
        cycle = math.floor(1 + position)
        x, up = 1.0 + position - cycle, self.step_size_up / self.total_size
        height = x / up if x <= up else (x - 1) / (up - 1)
        height *= self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            values = zip(self.base_momentums, self.max_momentums, strict=True)
            set_momentum(self.optimizer, [high - (high - low) * height for low, high in values])
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


class _Phase(NamedTuple):
    """A part of a cycle: up to a step, from and to which rate and momentum of a group."""

    end: float
    rates: tuple[str, str]
    momentums: tuple[str, str]


class OneCycleLR(LRScheduler):
    """Raise the rates once, and lower them to much less than they were (Smith and Topin, arXiv:1708.07120).

    Args:
        optimizer: an optimizer of `nn.optim`.
        max_lr: the highest rate, or one for each group.
        total_steps: number of steps; or `epochs` and `steps_per_epoch`.
        epochs: number of epochs.
        steps_per_epoch: number of steps of each.
        pct_start: the part of the steps in which rates rise.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether the momentum, or the first of `betas`, goes the other way.
        base_momentum: its lowest value, or one for each group.
        max_momentum: its highest value, or one for each group.
        div_factor: the highest rate divided by the first.
        final_div_factor: the first rate divided by the last.
        three_phase: whether rates first go down as they went up.
        last_epoch: the number of the last step; -1 begins.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.AdamW(nn.Linear(2, 1))
        >>> scheduler = nn.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10, pct_start=0.5)
        >>> [round(scheduler.step() or scheduler.get_last_lr()[0], 3) for _ in range(4)]
        [0.181, 0.52, 0.859, 1.0]
    """

    def __init__(
        self,
        optimizer: Any,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        require_groups(optimizer, "OneCycleLR")
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError(f"give total_steps, or epochs and steps_per_epoch{at_line(user_line())}")
        self.total_steps = int(total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0))
        if self.total_steps < 1:
            raise ValueError(f"the number of steps must be positive, not {self.total_steps}{at_line(user_line())}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start must be between 0 and 1, not {pct_start}{at_line(user_line())}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}{at_line(user_line())}")
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self._phases = _phases(self.total_steps, pct_start, three_phase)
        if cycle_momentum:
            require_momentum(optimizer, "OneCycleLR")
        if last_epoch == -1:
            lows, highs = (by_group(optimizer, "momentum", x) for x in (base_momentum, max_momentum))
            for i, (group, rate) in enumerate(
                zip(optimizer.param_groups, by_group(optimizer, "max_lr", max_lr), strict=True)
            ):
                first = rate / div_factor
                group.update({"initial_lr": first, "max_lr": rate, "min_lr": first / final_div_factor})
                if cycle_momentum:
                    group.update({"base_momentum": lows[i], "max_momentum": highs[i]})
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"step {self.last_epoch} of a scheduler of {self.total_steps} steps; give it more of them, or call it "
                f"once for each step{at_line(user_line())}"
            )
        start = 0.0
        for phase in self._phases:
            if self.last_epoch <= phase.end or phase is self._phases[-1]:
                break
            start = phase.end
        part = (self.last_epoch - start) / (phase.end - start) if phase.end > start else 1.0
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            set_momentum(self.optimizer, [self._between(group, phase.momentums, part) for group in groups])
        return [self._between(group, phase.rates, part) for group in groups]

    def _between(self, group: Any, ends: tuple[str, str], part: float) -> float:
        first, last = (float(group[name]) for name in ends)
        if self.anneal_strategy == "cos":
            return last + (first - last) / 2 * (1 + math.cos(math.pi * part))
        return (last - first) * part + first


def _phases(total: int, part: float, has_three: bool) -> list[_Phase]:
    up = _Phase(part * total - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    if not has_three:
        return [up, _Phase(total - 1, ("max_lr", "min_lr"), ("base_momentum", "max_momentum"))]
    return [
        up,
        _Phase(2 * part * total - 2, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")),
        _Phase(total - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
    ]


def by_group(optimizer: Any, name: str, value: Any) -> list[float]:
    """A value for each group, from one for all of them or a list."""
    count = len(optimizer.param_groups)
    if not is_plain(value, list | tuple):
        return [float(value)] * count
    if len(value) != count:
        raise ValueError(f"{name} has {len(value)} values for {count} groups{at_line(user_line())}")
    return [float(x) for x in value]


def require_momentum(optimizer: Any, what: str) -> None:
    """Raise unless the optimizer has a momentum, or betas.

    Raises:
        ValueError: it has neither.
    """
    if not {"momentum", "betas"} & set(optimizer.defaults):
        raise ValueError(
            f"{what} changes the momentum, which {type(optimizer).__name__} does not have; write cycle_momentum=False"
            + at_line(user_line())
        )


def set_momentum(optimizer: Any, values: list[float]) -> None:
    """Set the momentum of each group, or the first of its betas."""
    for group, value in zip(optimizer.param_groups, values, strict=True):
        if "betas" in optimizer.defaults:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value
