"""nn.evaluate and nn.predict: losses, metrics and outputs of a model on data, without training it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...base import tree
from ...base.source import at_line, user_line
from ...base.tracebacks import short_tracebacks
from ..modules.module import Module
from ..modules.roots import require_module
from ..transformations.jit import jit
from .data import Source
from .keeping import in_evaluation_mode
from .measures import Measure, named_metrics
from .placement import placement_for
from .steps import Averages, arguments_of, batch_of, validation_step


@short_tracebacks
def evaluate(
    model: Module,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    objective: Callable[..., Any] | None = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | Iterable[Callable[[Any, Any], Any]] = (),
) -> dict[str, float]:
    """The loss and the metrics of a model on data, in evaluation mode; as in the validation of `nn.fit`.

    Args:
        model: the model, which stays as it is, on a mesh if it is on one.
        data: batches, as for `nn.fit`.
        loss: a function of (output, target); or
        objective: a function of the model and the batch.
        metrics: functions and metrics of `nn.metrics`, as for `nn.fit`; those of `nn.metrics` hold their sums after.

    Returns:
        The figures by name: means over the samples, and metrics that are numbers.

    Raises:
        ValueError: neither or both of `loss` and `objective` are given, or there is no batch.
        TypeError: `data` does not provide batches.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> x, model = np.ones((8, 2), np.float32), nn.Linear(2, 1)
        >>> nn.init.zeros_(model.weight), nn.init.zeros_(model.bias)  # doctest: +ELLIPSIS
        (...)
        >>> nn.evaluate(model, nn.batches(x, x[:, :1]), loss=nn.functional.mse_loss)
        {'loss': 1.0}
    """
    if (loss is None) == (objective is None):
        raise ValueError(
            "evaluate takes exactly one of loss, a function of (output, target), and objective, a function of "
            f"(model, *batch){at_line(user_line())}"
        )
    require_module(model, "nn.evaluate takes")
    measure = Measure(loss, objective, named_metrics(metrics))
    averages = Averages(measure)
    placement = placement_for(model, None, None, None, "pad", measure)
    step = validation_step(measure, placement is not None and placement.masks)
    measure.reset()
    batches = Source(data, "data", 1).begin(1)
    if placement is not None:
        placement.replicate(averages.meters)
        batches = placement.batches(batches, model)
    with in_evaluation_mode(model):
        for batch in batches:
            step(model, averages.meters, *arguments_of(batch))
            averages.add(batch)
        averages.finish()
    return {**dict(zip(measure.names, averages.means(), strict=False)), **measure.values()}


@short_tracebacks
def predict(model: Module, data: Any, *, has_target: bool = False) -> Any:
    """The outputs of a model for all samples of data, in evaluation mode.

    Args:
        model: the model, which stays as it is.
        data: batches of its inputs, in order, such as `nn.batches(x, shuffle=False)`.
        has_target: whether the last array of a batch is a target, or one is under the name "target", which is left
            out.

    Returns:
        The outputs of all batches, joined along axis 0: an array of NumPy, or a container of arrays.

    Raises:
        TypeError: `data` does not provide batches.
        ValueError: there is no batch.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.predict(nn.Linear(2, 3), nn.batches(np.ones((70, 2), np.float32), shuffle=False)).shape
        (70, 3)
    """
    require_module(model, "nn.predict takes")

    def output_of(model: Any, *arrays: Any) -> Any:
        batch = batch_of(arrays)
        if isinstance(batch, dict):
            return model(**{name: x for name, x in batch.items() if not (has_target and name == "target")})
        return model(*(batch[:-1] if has_target else batch))

    compiled = jit(output_of)
    with in_evaluation_mode(model):
        outputs = [compiled(model, *arguments_of(batch)) for batch in Source(data, "data", 1).begin(1)]
    return tree.map_leaves(lambda *parts: np.concatenate([np.asarray(x) for x in parts]), *outputs)
