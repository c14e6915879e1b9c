"""Anomaly detection for graphs: when a gradient is not finite, the graph runs again as a program, which is searched.

In the mode, operations note what they were given, so that the graph that led to a tensor can be run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from ..api import anomaly
from ..api.anomaly.report import AnomalyError
from ..base.source import Line, at_line
from ..transforms.differentiate import with_pullback
from .graph import Node
from .operation_node import OperationNode
from .tensor import Tensor
from .tracing import NoProgram, noted_in_mode, program_of


def check_gradients(outputs: Sequence[Tensor], cotangents: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Raise AnomalyError if the values that a backward pass starts from, or its resulting gradients, are not finite.

    Args:
        outputs: the tensors that it starts from.
        cotangents: the gradients that were given for them.
        gradients: all that it has found.
    """
    if not any(map(anomaly.is_anomaly, map(_array, [*outputs, *gradients]))):
        return
    line = at_line(outputs[0].node.line if outputs[0].node is not None else None)
    try:
        program, values = program_of(outputs, notes=noted_in_mode)
    except NoProgram as reason:
        raise AnomalyError(
            "a gradient is not finite; the operation cannot be found by running the graph again, because "
            f"{reason}{line}"
        ) from None
    active = tuple(isinstance(x, Tensor) and x.requires_grad for x in values)
    whole = with_pullback(program, active, f"grad({program.name})")
    arrays, cts = list(map(_array, values)), list(map(_array, compress(cotangents, whole.out_active)))
    with anomaly.without_warnings():
        results = whole.program(*arrays, *cts)
    anomaly.check(
        whole.program,
        [*arrays, *cts],
        results,
        names=lambda: [*map(_name, values), *("a gradient given to backward" for _ in cts)],
        out_names=lambda: [
            *("the tensor that backward starts from" for _ in outputs),
            *(f"the gradient of {_name(x)}" for x in compress(compress(values, active), whole.in_active)),
        ],
    )
    if any(isinstance(x, Tensor) and x.node is not None for x in compress(values, active)):
        raise AnomalyError(
            "a gradient is not finite, because of an operation that was recorded before anomaly detection was enabled; "
            f"enable it before the forward code{line}"
        )
    raise AnomalyError(
        "a gradient is not finite, although the gradient of the function as a whole is: the backward pass, one "
        "operation after the other, multiplied the zero gradient of what np.where or the like leaves out by an "
        "infinite derivative. Choose the operand first, then the result: safe = np.where(ok, x, 1.0); "
        "y = np.where(ok, f(safe), other); or "
        f"take ft.grad of a function{line}"
    )


def _array(x: Any) -> Any:
    return np.asarray(x.array if isinstance(x, Tensor) else x)


def _name(x: Any) -> str:
    if isinstance(x, Tensor) and isinstance(x.asked, Line):
        return f"the leaf of {x.asked!r}"
    return "a tensor on the way" if isinstance(x, Tensor) and x.requires_grad else "an array"


def check_rule(node: Node, cotangents: Sequence[Any], found: Sequence[Any]) -> None:
    """Raise AnomalyError if a rule in Python makes a gradient that is not finite of some that are."""
    given, results = ([_array(x) for x in xs if x is not None] for xs in (cotangents, found))
    if not isinstance(node, OperationNode) and all(map(anomaly.is_finite, given)):
        for index, x in enumerate(results):
            if not anomaly.is_finite(x):
                raise AnomalyError(
                    f"gradient {index} that the backward of {node!r} returned is not finite{at_line(node.line)}"
                )
