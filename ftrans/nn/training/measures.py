"""Measures: what a training computes for each batch, a loss and metrics, and their means over some of its samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...api.branches import cond
from ...api.call import name_of
from ...api.vmap import vmap
from ...base import tree
from ...base.source import at_line, user_line
from ...core.types import is_inexact
from ...xla import gathered
from ..metrics import Metric
from ..mixed_precision.autocast import autocast
from ..modules.module import Module

# The loss and the metrics of a step.
MOST_FIGURES = 32
# How far the loss of a batch may be from the mean of those of its samples; and in 16 bits.
_RTOL_OF_MEANS, _RTOL_IN_16_BITS = 1e-3, 0.1
_NAME_OF_TARGET = "target"


class Measure:
    """What is computed for a batch: loss and metrics.

    Args:
        loss: function of output and target, or None.
        objective: function of the model and the batch, or None.
        metrics: functions of output and target, by name.
        precision: that of the products of the model, or of the objective.

    Attributes:
        names: names of the values, the loss first; those that the objective returns are added by its first trace.
        accumulated: by name, those of the metrics that add up sums of their own.
    """

    def __init__(self, loss: Any, objective: Any, metrics: Mapping[str, Any], precision: str = "float32") -> None:
        self._loss = loss
        self._objective = objective
        self.accumulated: dict[str, Metric] = {name: x for name, x in metrics.items() if isinstance(x, Metric)}
        self._metrics = {name: f for name, f in metrics.items() if name not in self.accumulated}
        self._block = autocast(precision)
        self.names = ["loss", *self._metrics]
        # Modules among them must be arguments of what is compiled.
        self.modules = [x for x in (loss, *metrics.values()) if isinstance(x, Module)]
        self._is_known = objective is None
        # By which errors name it.
        self.__name__ = name_of(loss if objective is None else objective)

    @property
    def has_output(self) -> bool:
        """Whether it is a function of the output and the target of each sample."""
        return self._objective is None

    def __call__(self, model: Module, batch: Any, mask: Any = None) -> tuple[Any, tuple[list[Any], list[Any]]]:
        """The loss, of the samples in a mask alone, if there is one; and, as a pair of lists, the metrics.

        The first list has those in `names`, the second what a batch adds to the sums of those in `accumulated`.
        """
        if self._objective is not None:
            loss, figures = self._by_objective(model, batch)
            return loss, (figures, [])
        output, target = self._output_and_target(model, batch)
        loss, *figures = self._of(output, target, mask)
        return loss, (figures, [metric.of_batch(output, target, mask) for metric in self.accumulated.values()])

    def reset(self) -> None:
        """Forget what the metrics have accumulated."""
        for metric in self.accumulated.values():
            metric.reset()

    def values(self) -> dict[str, float]:
        """Those of the accumulated metrics that are numbers."""
        found = {name: metric.compute() for name, metric in self.accumulated.items()}
        return {name: x for name, x in found.items() if isinstance(x, float)}

    def state(self) -> dict[str, Any]:
        """What the metrics have accumulated, as numbers."""
        return {name: gathered(metric.state_cell.array).tolist() for name, metric in self.accumulated.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue with what `state()` returned, as far as the metrics are the same."""
        for name, metric in self.accumulated.items():
            sums = np.asarray(state.get(name, np.nan), np.float64)
            if sums.shape == metric.state_cell.shape:
                metric.state_cell.value = sums

    def compare_with_means(self, model: Module, batch: Any) -> list[tuple[Any, Any, Any]]:
        """For the loss and each metric: that of a batch, the mean of those of its samples, and whether they agree."""
        given = self._output_and_target(model, batch)
        pairs = zip(self._figures(*given), self._of_samples(*given), strict=True)
        return [(whole, _wide(x).mean(), _is_mean(whole, x)) for whole, x in pairs]

    def _output_and_target(self, model: Module, batch: Any) -> tuple[Any, Any]:
        if isinstance(batch, dict):
            if _NAME_OF_TARGET not in batch or len(batch) < 2:
                raise _no_target(f"a dictionary of {', '.join(map(repr, batch))}")
            named = {name: x for name, x in batch.items() if name != _NAME_OF_TARGET}
            with self._block:
                return model(**named), batch[_NAME_OF_TARGET]
        if len(batch) < 2:
            raise _no_target("one array")
        with self._block:
            return model(*batch[:-1]), batch[-1]

    def _of(self, output: Any, target: Any, mask: Any) -> list[Any]:
        if mask is None:
            return self._figures(output, target)
        given = output, target, mask
        # A batch that nothing fills up is what the functions were written for.
        return cond(np.all(mask), lambda o, t, _: self._figures(o, t), self._means, *given)

    def _figures(self, output: Any, target: Any) -> list[Any]:
        """The loss, and the metrics in the order of their names."""
        loss = _number(self._loss(output, target), f"the loss {name_of(self._loss)}")
        figures = {name: _number(f(output, target), f"the metric {name}") for name, f in self._metrics.items()}
        return [loss, *map(_floating, figures.values())]

    def _means(self, output: Any, target: Any, mask: Any) -> list[Any]:
        """The means of the figures of samples in a mask; NaN for a figure that is no mean over samples."""
        pairs = zip(self._figures(output, target), self._of_samples(output, target), strict=True)
        return [np.where(_is_mean(whole, x), _mean(x, mask), np.nan).astype(x.dtype) for whole, x in pairs]

    def _of_samples(self, output: Any, target: Any) -> list[Any]:
        """The figures of each sample, computed as those of a batch of one."""

        def of_one(output: Any, target: Any) -> list[Any]:
            return self._figures(*tree.map_leaves(lambda x: x[None], (output, target)))

        return list(vmap(of_one)(output, target))

    def _by_objective(self, model: Module, batch: Any) -> tuple[Any, list[Any]]:
        given = self._objective
        with self._block:
            found = given(model, **batch) if isinstance(batch, dict) else given(model, *batch)
        figures: Mapping[str, Any] = {}
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping):
            found, figures = found
        if len(figures) >= MOST_FIGURES or "loss" in figures:
            raise ValueError(
                f"an objective returns at most {MOST_FIGURES - 1} figures beside the loss, none of them called "
                f"'loss'; {name_of(given)} returned {', '.join(map(str, figures))}{at_line(user_line())}"
            )
        names = [str(name) for name in figures]
        if self._is_known and names != self.names[1:]:
            raise ValueError(
                f"the objective {name_of(given)} returned the figures {', '.join(self.names[1:]) or 'none'} first and "
                f"{', '.join(names) or 'none'} now; return the same ones, in the same order, also in evaluation"
                + at_line(user_line())
            )
        self._is_known, self.names[1:] = True, names
        loss = _number(found, f"the objective {name_of(given)}")
        return loss, [_number(x, f"the figure {name}") for name, x in figures.items()]


def _floating(x: Any) -> Any:
    """A number as an array of a floating-point dtype."""
    if not hasattr(x, "dtype"):
        return np.asarray(x, np.float32)
    return x if is_inexact(x.dtype) else x.astype(np.float32)


def _wide(x: Any) -> Any:
    """Figures as summed up: a sum in 16 bits overflows, and counts wrongly."""
    return x if x.dtype.itemsize >= 4 else x.astype(np.float32)


def _mean(of_samples: Any, mask: Any) -> Any:
    """The mean of a figure of the samples in a mask."""
    x = _wide(of_samples)
    return np.where(mask, x, 0).sum() / mask.astype(x.dtype).sum()


def _is_mean(of_batch: Any, of_samples: Any) -> Any:
    """Whether the figure of a batch is the mean of those of its samples, up to rounding."""
    x = _wide(of_samples)
    rtol = _RTOL_OF_MEANS if x is of_samples else _RTOL_IN_16_BITS
    return abs(x.mean() - of_batch) <= rtol * abs(x).mean() + 1e-6


def _number(x: Any, what: str) -> Any:
    if x is None:
        raise TypeError(
            f"{what} returned None instead of a number for the batch; perhaps it has no return statement"
            + at_line(user_line())
        )
    if np.shape(x) != ():
        raise ValueError(
            f"{what} returned an array of shape {np.shape(x)} instead of a number for the batch; take its mean"
            + at_line(user_line())
        )
    return x


def _no_target(what: str) -> ValueError:
    return ValueError(
        f"loss is a function of (output, target), but a batch was {what}: it needs a target, as the last of several "
        f"arrays, or under the name {_NAME_OF_TARGET!r} in a dictionary. For a loss without a target write "
        f"objective=..., a function of the model and the batch{at_line(user_line())}"
    )


# The arguments of users


def require_function(what: str, f: Any) -> None:
    """Raise unless a loss, an objective or a metric is a function."""
    if callable(f) and not isinstance(f, type):
        return
    given = f"the class {f.__name__}; make an object of it, {f.__name__}()" if isinstance(f, type) else repr(f)
    raise TypeError(
        f"{what} is a function, such as nn.functional.cross_entropy, or a module, such as nn.CrossEntropyLoss(), not "
        f"{given}{at_line(user_line())}"
    )


def named_metrics(metrics: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """Metrics by name."""
    if callable(metrics):
        metrics = [metrics]
    if isinstance(metrics, Mapping):
        found = dict(metrics)
    else:
        found = {f.label if isinstance(f, Metric) else name_of(f): f for f in metrics}
    for name, f in found.items():
        if isinstance(f, type):
            require_function(f"the metric {name}", f)
        if not callable(f) or name == "loss" or name.startswith("val_"):
            raise ValueError(
                f"metrics are functions of (output, target) by name, such as {{'accuracy': accuracy}}, whose names are "
                f"not 'loss' and do not begin with 'val_'; given was {name!r}: {f!r}{at_line(user_line())}"
            )
    return found
