"""Calls of modules with other arrays in place of their parameters, as in `torch.nn.utils.stateless`."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from ...base.source import at_line, user_line
from ..modules.module import Module
from ..modules.state import functional_call as call_with

__all__ = ["functional_call"]


def __dir__() -> list[str]:
    return sorted(__all__)


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other arrays in place of its parameters and buffers, by the signature of torch.

    What the forward code changes is as in torch: of buffers that are given, the entry in `parameters_and_buffers`;
    others in the module.  `nn.functional_call` returns such changes instead.

    Args:
        module: the module.
        parameters_and_buffers: arrays by path; those that are not given are those of the module.
        args: the arguments, a tuple; or a single one.
        kwargs: the keyword arguments.
        tie_weights: whether an array for one path of a parameter that has several stands for all of them, which is
            always so here.
        strict: whether all parameters and buffers must be given.

    Returns:
        The result of the module.

    Raises:
        KeyError: a path does not exist.
        ValueError: an array does not have the shape of its parameter, `strict` is set and one is missing, or
            `tie_weights` is not set.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> arrays = {"weight": np.ones((1, 2)), "bias": np.zeros(1)}
        >>> nn.utils.stateless.functional_call(nn.Linear(2, 1), arrays, (np.array([3.0, 4.0]),))
        array([7.])
    """
    if not tie_weights:
        raise ValueError(
            "a parameter with several paths is one cell, so an array stands for all of them; give the module two "
            f"parameters, or leave out tie_weights=False{at_line(user_line())}"
        )
    if strict:
        missing = [path for path in module.state_dict() if path not in parameters_and_buffers]
        if missing:
            raise ValueError(f"functional_call with strict=True misses {', '.join(missing)}{at_line(user_line())}")
    given = () if args is None else args if type(args) is tuple else (args,)
    out, state = call_with(module, parameters_and_buffers, *given, **(kwargs or {}))
    changed = {path: x for path, x in state.items() if x is not parameters_and_buffers.get(path)}
    cells = dict(module.named_cells())
    for path, x in changed.items():
        if path not in parameters_and_buffers:
            cells[path].value = x
        elif isinstance(parameters_and_buffers, MutableMapping):
            parameters_and_buffers[path] = x
    return out
