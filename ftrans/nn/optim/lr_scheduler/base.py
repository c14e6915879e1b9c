"""LRScheduler: what sets the learning rates of an optimizer from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....base.source import at_line, user_line
from ....core.trace import current_builder
from ..optimizer import Optimizer
from .loading import require_state


class LRScheduler:
    """Base class of schedulers: `step()` sets the learning rate of each group of an optimizer.

    A subclass defines `get_lr`, which computes the rates from those of the step before, so that several schedulers of
    one optimizer multiply their factors; and may define `closed_form`, which computes them from the number of the step.
    Rates are inputs of compiled steps, so nothing is compiled anew.

    Args:
        optimizer: an optimizer of `nn.optim`.
        last_epoch: the number of the last step; -1 begins, with the present rates.

    Attributes:
        base_lrs: the learning rates at the beginning, one for each group.
        last_epoch: the number of steps so far.

    Raises:
        TypeError: the optimizer has no groups of parameters.
        KeyError: `last_epoch` is not -1, and the groups do not know their first rates.

    Example:
        >>> from ftrans import nn
        >>> class Halving(nn.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
        >>> optimizer = nn.optim.SGD(nn.Linear(2, 1), lr=0.8)
        >>> scheduler = Halving(optimizer)
        >>> scheduler.step()
        >>> optimizer.param_groups[0]["lr"]
        0.4
    """

    # What `state_dict` leaves out.
    _kept_out: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        require_groups(optimizer, type(self).__name__)
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"group {number} of the optimizer has no 'initial_lr', which last_epoch={last_epoch} goes on from; "
                    f"load the state of the optimizer first, or set it{at_line(user_line())}"
                )
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.begin()

    def begin(self) -> None:
        """Make the first step, which sets the first rates."""
        self._is_first = True
        self.step()
        self._is_first = False

    def unstep(self) -> None:
        """Take back that a step was made, so that `begin` can make it again."""
        self.last_epoch -= 1

    def get_lr(self) -> list[float]:
        """The rates of the step `last_epoch`, from the present ones in the groups."""
        raise NotImplementedError(
            f"{type(self).__name__} has no get_lr(self) to compute the learning rates{at_line(user_line())}"
        )

    def closed_form(self) -> list[float]:
        """The same from `base_lrs` alone, for a step that does not follow the last one."""
        return self.get_lr()

    def present(self) -> list[float]:
        """The learning rates of the groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rates that the last step has set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next step.

        Args:
            epoch: the number of the step, if it does not follow the last one.

        Raises:
            RuntimeError: it is called in a function that is traced.
        """
        require_host(type(self).__name__)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.set(self.get_lr() if epoch is None else self.closed_form())

    def set(self, rates: list[float]) -> None:
        """Set the learning rates of the groups."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = self.present()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, and functions that cannot be pickled."""
        return {name: value for name, value in self.__dict__.items() if name not in self._kept_out}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the attributes to what `state_dict()` returned; the rates are in the state of the optimizer.

        Args:
            state_dict: of a scheduler of this class, for as many groups.

        Raises:
            TypeError: it is no mapping.
            ValueError: it is the state of something else; nothing is loaded.
        """
        require_state(self, state_dict)
        self._load(state_dict)

    def _load(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)


def require_groups(optimizer: Any, what: str) -> None:
    """Raise unless an optimizer has groups of parameters.

    Raises:
        TypeError: it has none.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{what} takes an optimizer of nn.optim, not {type(optimizer).__name__}{at_line(user_line())}")
    if not hasattr(optimizer, "param_groups"):
        raise TypeError(
            f"{what} sets the learning rates of an optimizer of nn.optim; to nn.Optimizer give a schedule of optax in "
            f"place of a rate, nn.Optimizer(model, optax.adam(optax.cosine_decay_schedule(...))){at_line(user_line())}"
        )


def require_host(what: str) -> None:
    """Raise in a trace, which would count one step for all calls of what it records.

    Raises:
        RuntimeError: a trace runs.
    """
    if current_builder() is not None:
        raise RuntimeError(
            f"{what}.step() is called in a function that is traced, and would count a single step; call it after the "
            f"compiled step, which takes the new rate as an input{at_line(user_line())}"
        )
