"""Schedulers made of others: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ....base.source import at_line, user_line
from .base import LRScheduler, require_host
from .plateau import ReduceLROnPlateau


class _OfSchedulers(LRScheduler):
    """A scheduler that holds others, whose state is a part of its own."""

    _kept_out = ("optimizer", "_schedulers")
    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [x.state_dict() for x in self._schedulers]}

    def _load(self, state: Mapping[str, Any]) -> None:
        given = dict(state)
        for scheduler, held in zip(self._schedulers, given.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(held)
        super()._load(given)


class SequentialLR(_OfSchedulers):
    """Schedulers one after the other, such as a warm-up and a decay.

    Args:
        optimizer: an optimizer of `nn.optim`.
        schedulers: schedulers of this optimizer.
        milestones: the steps at which the second and each next one begins.
        last_epoch: -1.

    Raises:
        ValueError: the numbers of schedulers and milestones do not fit, or a scheduler is of another optimizer.

    Example:
        >>> from ftrans import nn
        >>> from ftrans.nn.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
        >>> optimizer = nn.optim.AdamW(nn.Linear(2, 1), lr=1.0)
        >>> warm_up = LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> scheduler = SequentialLR(optimizer, [warm_up, CosineAnnealingLR(optimizer, T_max=4)], milestones=[2])
        >>> [round(scheduler.step() or scheduler.get_last_lr()[0], 3) for _ in range(4)]
        [0.75, 1.0, 0.854, 0.5]
    """

    def __init__(
        self, optimizer: Any, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        _require_schedulers("SequentialLR", schedulers, optimizer)
        if any(isinstance(x, ReduceLROnPlateau) for x in schedulers):
            raise ValueError(f"SequentialLR has no metric for a ReduceLROnPlateau{at_line(user_line())}")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR of {len(schedulers)} schedulers takes {len(schedulers) - 1} milestones, not "
                f"{len(milestones)}{at_line(user_line())}"
            )
        require_host("SequentialLR")
        self.optimizer = optimizer
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.unstep()
        self._schedulers[0].begin()
        self._last_lr = self._schedulers[0].get_last_lr()

    def unstep(self) -> None:
        # As in torch, only schedulers inside do; one that is inside of another counts the first step twice.
        for scheduler in self._schedulers:
            scheduler.unstep()

    def begin(self) -> None:
        self.step()

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next step.

        Args:
            epoch: the number of the step is counted here, and none is given.
        """
        require_host("SequentialLR")
        if epoch is not None and epoch != 0:
            raise ValueError(f"SequentialLR counts its steps itself; call step(){at_line(user_line())}")
        self.last_epoch = self.last_epoch + 1 if epoch is None else 0
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if epoch == 0 or (number > 0 and self._milestones[number - 1] == self.last_epoch):
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_OfSchedulers):
    """Schedulers that all step in each step, so that their factors multiply.

    Args:
        schedulers: schedulers of one optimizer.
        optimizer: the optimizer; by default that of the schedulers.

    Example:
        >>> from ftrans import nn
        >>> from ftrans.nn.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=1.0)
        >>> parts = [ConstantLR(optimizer, factor=0.5, total_iters=2), ExponentialLR(optimizer, gamma=0.5)]
        >>> scheduler = ChainedScheduler(parts)
        >>> [scheduler.step() or scheduler.get_last_lr()[0] for _ in range(3)]
        [0.25, 0.25, 0.125]
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Any = None) -> None:
        if not schedulers:
            raise ValueError(f"ChainedScheduler takes at least one scheduler{at_line(user_line())}")
        optimizer = optimizer or schedulers[0].optimizer
        _require_schedulers("ChainedScheduler", schedulers, optimizer)
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._last_lr = self.present()

    def step(self, *metric: Any) -> None:
        """Let all schedulers step.

        Args:
            metric: for a `ReduceLROnPlateau` among them.
        """
        for scheduler in self._schedulers:
            scheduler.step(*(metric if isinstance(scheduler, ReduceLROnPlateau) else ()))
        self._last_lr = self.present()


def _require_schedulers(what: str, schedulers: Sequence[Any], optimizer: Any) -> None:
    if not schedulers:
        raise ValueError(f"{what} takes at least one scheduler{at_line(user_line())}")
    for number, scheduler in enumerate(schedulers):
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(
                f"{what} takes schedulers, but number {number} is {type(scheduler).__name__}{at_line(user_line())}"
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(f"scheduler {number} of {what} is of another optimizer{at_line(user_line())}")
