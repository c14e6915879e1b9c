"""Pruning: parameters some elements of which are left out, as in `torch.nn.utils.prune`.

layer.weight = layer.weight_mask * layer.weight_orig      # whenever the weight is read
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ..modules.computed import cell_of, rule_of
from ..modules.module import Module
from .pruning_methods import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    Pruned,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    array_of,
    remove,
)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones.

    Args:
        module: the module.
        name: the name of the parameter.

    Returns:
        The module.

    Raises:
        ValueError: there is no such parameter.
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Leave out elements of a parameter at random, drawn from the generator that `nn.manual_seed` seeds.

    Args:
        module: the module.
        name: the name of the parameter.
        amount: how many of those that are left: an integer, or a fraction.

    Returns:
        The module.

    Raises:
        ValueError: there is no such parameter, or there are not as many elements.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Any = None) -> Module:
    """Leave out the elements of a parameter with the smallest absolute values.

    Args:
        module: the module.
        name: the name of the parameter.
        amount: how many of those that are left: an integer, or a fraction.
        importance_scores: an array of the same shape, whose absolute values count instead.

    Returns:
        The module.

    Raises:
        ValueError: there is no such parameter, or there are not as many elements.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.Linear(3, 1)
        >>> layer.weight.value = np.array([[3.0, -1.0, 2.0]])
        >>> nn.utils.prune.l1_unstructured(layer, "weight", 1).weight.detach()
        tensor([[ 3., -0.,  2.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Leave out slices of a parameter along an axis, at random.

    Args:
        module: the module.
        name: the name of the parameter.
        amount: how many of the slices that are left: an integer, or a fraction.
        dim: the axis.

    Returns:
        The module.

    Raises:
        ValueError: there is no such parameter, it is a vector, or there are not as many slices.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None) -> Module:
    """Leave out the slices of a parameter along an axis that have the smallest norms.

    Args:
        module: the module.
        name: the name of the parameter.
        amount: how many of the slices that are left: an integer, or a fraction.
        n: the order of the norm, as for `LnStructured`.
        dim: the axis.
        importance_scores: an array of the same shape, whose norms count instead.

    Returns:
        The module.

    Raises:
        ValueError: there is no such parameter, it is a vector, or there are not as many slices.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Leave out the elements of a parameter where a mask is zero.

    Args:
        module: the module.
        name: the name of the parameter.
        mask: array of the same shape.

    Returns:
        The module.

    Raises:
        ValueError: there is no such parameter, or the mask has another shape.
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Any] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters together, as if they were one vector.

    Args:
        parameters: pairs of a module and the name of a parameter.
        pruning_method: a class of pruning methods for single elements, such as `L1Unstructured`.
        importance_scores: for some of the pairs an array by which elements are chosen in place of the parameter.
        kwargs: arguments of the class.

    Raises:
        TypeError: the method is not for single elements.
        ValueError: there is no such parameter, or scores have another shape; nothing has been pruned.

    Example:
        >>> from ftrans import nn
        >>> prune, model = nn.utils.prune, nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        >>> prune.global_unstructured([(m, "weight") for m in model], prune.L1Unstructured, amount=0.25)
        >>> print(sum(int((m.weight_mask == 0).sum()) for m in model))
        6
    """
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"global_unstructured takes methods for single elements, such as L1Unstructured, not "
            f"{pruning_method.__name__}, which is {method.PRUNING_TYPE}{at_line(user_line())}"
        )
    places = list(parameters)
    if not places:
        raise ValueError(f"global_unstructured was given no parameters{at_line(user_line())}")
    scores, masks = [], []
    for module, name in places:
        is_masked = isinstance(rule_of(module, name), Pruned)
        if not is_masked:
            cell_of(module, name, "global_unstructured")
        held = array_of(module, name)
        found = np.asarray((importance_scores or {}).get((module, name), held))
        if found.shape != held.shape:
            raise ValueError(
                f"importance_scores of {name!r} of {module.described()} must have the shape {held.shape}, not "
                f"{found.shape}{at_line(user_line())}"
            )
        scores.append(found)
        masks.append(getattr(module, f"{name}_mask").value if is_masked else np.ones_like(held))
    flat = [np.concatenate([x.ravel() for x in xs]) for xs in (scores, masks)]
    new = PruningContainer(method).compute_mask(*flat)
    start = 0
    for (module, name), mask in zip(places, masks, strict=True):
        custom_from_mask(module, name, new[start : start + mask.size].reshape(mask.shape))
        start += mask.size


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of a module inside, is pruned.

    Args:
        module: the module.
    """
    return any(isinstance(rule, Pruned) for m in module.modules() for rule in m.__dict__.get("_computed", {}).values())
