"""Weight and spectral normalization in their older form, whose parameters are attributes of the layer itself.

The functions of `parametrizations` do the same, with parameters in `layer.parametrizations`; these are for state
dictionaries with the older names.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...api.derivatives import stop_gradient
from ...autograd.modes import no_grad
from ...base.source import at_line, user_line
from ..cells.kinds import Buffer, Parameter
from ..functional import normalize
from ..modules.computed import cell_of, exchange, rule_of
from ..modules.module import Module
from .parametrizations import as_matrix, norm_except, require_iterations, rows_of, unit_vector, without_gradient

Layer = TypeVar("Layer", bound=Module)


class _WeightNorm(NamedTuple):
    """The rule of a weight with a norm that is trained."""

    dim: int | None

    def compute(self, module: Any, name: str) -> Any:
        g, v = getattr(module, f"{name}_g"), getattr(module, f"{name}_v")
        return v.read() * (g.read() / norm_except(v.read(), self.dim))

    def assign(self, module: Any, name: str, value: Any) -> None:
        raise _not_assigned(module, name, f"{name}_g and {name}_v")


class _SpectralNorm(NamedTuple):
    """The rule of a weight that is divided by its largest singular value."""

    dim: int
    eps: float

    def compute(self, module: Any, name: str) -> Any:
        weight = getattr(module, f"{name}_orig").read()
        u, v = (stop_gradient(getattr(module, f"{name}_{part}").read()) for part in "uv")
        # NumPy multiplies matrices of bfloat16 in float32.
        return weight / (u @ (as_matrix(weight, self.dim) @ v)).astype(weight.dtype)

    def assign(self, module: Any, name: str, value: Any) -> None:
        raise _not_assigned(module, name, f"{name}_orig")


class _PowerMethod(NamedTuple):
    """The hook that improves the singular vectors before each call of a module in training mode."""

    name: str
    dim: int
    eps: float
    iterations: int

    def __call__(self, module: Any, args: Any) -> None:
        if not module.training:
            return
        cells = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(without_gradient(getattr(module, f"{self.name}_orig").read()), self.dim)
        u, v = (cell.value for cell in cells)
        for _ in range(self.iterations):
            v = normalize(matrix.T @ u, dim=0, eps=self.eps).astype(matrix.dtype)
            u = normalize(matrix @ v, dim=0, eps=self.eps).astype(matrix.dtype)
        for cell, x in zip(cells, (u, v), strict=True):
            cell.value = x


def weight_norm(module: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Train norm and direction of a weight apart; `parametrizations.weight_norm` with other names of parameters.

    Args:
        module: the module, which gets the parameters `weight_g` and `weight_v`.
        name: the name of the weight.
        dim: axis along which each slice has a norm of its own; None for one norm of the whole weight.

    Returns:
        The module.

    Raises:
        ValueError: the module has no such parameter.

    Example:
        >>> from ftrans import nn
        >>> list(nn.utils.weight_norm(nn.Linear(3, 2)).state_dict())
        ['bias', 'weight_g', 'weight_v']
    """
    cell = cell_of(module, name, "weight_norm")
    norm = Parameter(np.array(norm_except(cell.value, dim)), cell.requires_grad)
    exchange(module, {name: _WeightNorm(dim)}, [name], {f"{name}_g": norm, f"{name}_v": cell})
    return module


def remove_weight_norm(module: Layer, name: str = "weight") -> Layer:
    """Undo `weight_norm`: the weight is a parameter again, with its present value.

    Args:
        module: the module.
        name: the name of the weight.

    Returns:
        The module.

    Raises:
        ValueError: the weight has no such norm.
    """
    return _removed(module, name, _WeightNorm, ("_v", "_g"), "remove_weight_norm")


def spectral_norm(
    module: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Divide a weight by its largest singular value; `parametrizations.spectral_norm` with other names of parameters.

    Each call of the module in training mode goes on with the power method.

    Args:
        module: the module, which gets the parameter `weight_orig` and the buffers `weight_u` and `weight_v`.
        name: the name of the weight.
        n_power_iterations: number of iterations in each call.
        eps: lower bound of the norms that are divided by.
        dim: axis of the weight that is the rows of a matrix; by default 1 for transposed convolutions, else 0.

    Returns:
        The module.

    Raises:
        ValueError: the module has no such parameter, or the number of iterations is not positive.

    Example:
        >>> from ftrans import nn
        >>> list(nn.utils.spectral_norm(nn.Linear(3, 2)).state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    require_iterations(n_power_iterations)
    cell = cell_of(module, name, "spectral_norm")
    rows = rows_of(module, dim) % len(cell.shape)
    height, width = as_matrix(cell.value, rows).shape
    vectors = [Buffer(unit_vector(size, cell.dtype, eps)) for size in (height, width)]
    new = {f"{name}_orig": cell, f"{name}_u": vectors[0], f"{name}_v": vectors[1]}
    exchange(module, {name: _SpectralNorm(rows, eps)}, [name], new)
    hook: Any = _PowerMethod(name, rows, eps, n_power_iterations)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Layer, name: str = "weight") -> Layer:
    """Undo `spectral_norm`: the weight is a parameter again, with its present value.

    Args:
        module: the module.
        name: the name of the weight.

    Returns:
        The module.

    Raises:
        ValueError: the weight has no such norm.
    """
    _removed(module, name, _SpectralNorm, ("_orig", "_u", "_v"), "remove_spectral_norm")
    hooks = module.__dict__["_hooks"]["forward_pre"]
    for key, (hook, _) in list(hooks.items()):
        if isinstance(hook, _PowerMethod) and hook.name == name:
            del hooks[key]
    if not any(module.__dict__["_hooks"].values()):
        delattr(module, "_hooks")
    return module


def _removed(module: Layer, name: str, rule: type[Any], endings: tuple[str, ...], what: str) -> Layer:
    """The module with the first of some cells as its parameter again, and without the others."""
    if not isinstance(rule_of(module, name), rule):
        raise ValueError(
            f"{what} takes a module whose {name!r} was normalized by that function, not {module.described()}"
            + at_line(user_line())
        )
    with no_grad():
        value = np.array(getattr(module, name))
    cell = getattr(module, name + endings[0])
    cell.value = value
    exchange(module, {name: None}, [name + ending for ending in endings], {name: cell})
    return module


def _not_assigned(module: Any, name: str, others: str) -> TypeError:
    return TypeError(
        f"{name!r} of {module.described()} is computed from {others}; assign those, or take nn.utils.parametrizations, "
        f"whose weights may be assigned{at_line(user_line())}"
    )
