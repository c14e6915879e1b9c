"""ReduceLROnPlateau: lower learning rates when a metric no longer improves."""

from __future__ import annotations

import math
from typing import Any

from ....base.cell import read
from ....base.source import at_line, user_line
from .base import LRScheduler, require_groups, require_host
from .cycles import by_group


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rates by a factor when a metric has not improved for some steps.

    Args:
        optimizer: an optimizer of `nn.optim`.
        mode: whether the metric is to be as small ("min") or as large ("max") as possible.
        factor: the factor.
        patience: number of steps without improvement that are waited for.
        threshold: by how much a metric has to be better than the best so far.
        threshold_mode: whether that is a part of it ("rel"), or a difference ("abs").
        cooldown: number of steps after a change in which none counts.
        min_lr: the lowest rate, or one for each group.
        eps: a change by less than this is none.

    Raises:
        ValueError: an argument is out of its range.

    Example:
        >>> from ftrans import nn
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> scheduler = nn.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in [3.0, 2.0, 2.0, 2.0]:
        ...     scheduler.step(loss)
        >>> optimizer.param_groups[0]["lr"]
        0.1
    """

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        require_groups(optimizer, "ReduceLROnPlateau")
        if not factor < 1:
            raise ValueError(f"factor must be less than 1, not {factor}{at_line(user_line())}")
        for name, value, known in (("mode", mode, ("min", "max")), ("threshold_mode", threshold_mode, ("rel", "abs"))):
            if value not in known:
                raise ValueError(f"{name} is {known[0]!r} or {known[1]!r}, not {value!r}{at_line(user_line())}")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.min_lrs = by_group(optimizer, "min_lr", min_lr)
        self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        self._last_lr = self.present()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of a metric, and lower the rates if it is time to.

        Args:
            metrics: the metric, a number.
            epoch: the number of the step, if it does not follow the last one.
        """
        require_host("ReduceLROnPlateau")
        value = float(read(metrics))
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            lowered = [max(lr * self.factor, least) for lr, least in zip(self.present(), self.min_lrs, strict=True)]
            self.set([new if lr - new > self.eps else lr for lr, new in zip(self.present(), lowered, strict=True)])
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self.present()

    def is_better(self, a: float, best: float) -> bool:
        """Whether a metric is better than the best so far."""
        sign = 1 if self.mode == "min" else -1
        margin = 0.0 if math.isinf(best) else self.threshold * (best if self.threshold_mode == "rel" else 1.0)
        return sign * a < sign * best - margin

    @property
    def in_cooldown(self) -> bool:
        """Whether the steps after a change still do not count."""
        return self.cooldown_counter > 0
