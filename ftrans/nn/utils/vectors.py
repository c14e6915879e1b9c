"""The parameters of a model as one vector, as optimizers of SciPy and other solvers take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ... import numpy as fnp
from ...base.source import at_line, user_line
from ..cells.kinds import Parameter
from ..modules.module import Module


def parameters_to_vector(parameters: Module | Iterable[Any] | Mapping[str, Any]) -> Any:
    """Concatenate parameters, or their gradients, to a vector.

    Args:
        parameters: a module, parameters or arrays, or a dictionary of these, such as gradients of `nn.value_and_grad`.

    Returns:
        A vector.

    Example:
        >>> from ftrans import nn
        >>> nn.parameters_to_vector(nn.Linear(2, 3)).shape
        (9,)
    """
    return fnp.concatenate([fnp.ravel(x.value if isinstance(x, Parameter) else x) for x in _listed(parameters)])


def vector_to_parameters(vector: Any, parameters: Module | Iterable[Parameter]) -> None:
    """Overwrite parameters with the elements of a vector, in the order of `parameters_to_vector`.

    Args:
        vector: a vector.
        parameters: a module, or parameters.

    Raises:
        ValueError: the vector does not have as many elements as the parameters.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> nn.vector_to_parameters(np.array([1.0, 2.0, 3.0]), model)
        >>> model(np.array([1.0, 1.0]))
        array([6.])
    """
    found = _listed(parameters)
    size = sum(p.size for p in found)
    if vector.shape != (size,):
        raise ValueError(
            f"the parameters have {size} elements, so the vector has shape ({size},), not {tuple(vector.shape)}"
            + at_line(user_line())
        )
    start = 0
    for p in found:
        p.value = vector[start : start + p.size].reshape(p.shape).astype(p.dtype)
        start += p.size


def _listed(parameters: Any) -> list[Any]:
    if isinstance(parameters, Module):
        return list(parameters.parameters())
    return list(parameters.values() if isinstance(parameters, Mapping) else parameters)
