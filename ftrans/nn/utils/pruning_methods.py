"""Pruning methods: which elements of a parameter are left out, by size, at random, or by a given mask."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...autograd.creation import sharing
from ...autograd.modes import no_grad
from ...base.source import at_line, user_line
from ..cells.kinds import Buffer
from ..init import generator
from ..modules.computed import cell_of, exchange, rule_of
from ..modules.module import Module

Array = np.ndarray[Any, Any]


class Pruned(NamedTuple):
    """The rule of a parameter some elements of which are left out."""

    def compute(self, module: Any, name: str) -> Any:
        return getattr(module, f"{name}_mask").read() * getattr(module, f"{name}_orig").read()

    def assign(self, module: Any, name: str, value: Any) -> None:
        raise TypeError(
            f"{name!r} of {module.described()} is pruned; assign {name}_orig, or prune.remove(module, {name!r}) first"
            + at_line(user_line())
        )


class BasePruningMethod(ABC):
    """Base class of pruning methods, also of the user's: `compute_mask` says which elements are kept.

    A subclass sets `PRUNING_TYPE`, which says what a parameter that is pruned already is to the method:

    - "unstructured": a vector of the elements that are kept,
    - "structured": the array without the slices along its attribute `dim` that are left out,
    - "global": the whole array.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> class EveryOther(nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         return np.arange(t.size).reshape(t.shape) % 2
        >>> layer = nn.Linear(4, 1)
        >>> method = EveryOther.apply(layer, "weight")
        >>> layer.weight_mask.value
        array([[0., 1., 0., 1.]], dtype=float32)
    """

    PRUNING_TYPE: ClassVar[str]

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of an array: 0 for what is left out.

        Args:
            t: the array, or scores of the importance of its elements, a tensor.
            default_mask: the mask so far, of the same shape.

        Returns:
            An array of the same shape.
        """

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter of a module.

        The parameter becomes `weight_orig`, and its mask the buffer `weight_mask`; `module.weight` is their product.

        Args:
            module: the module.
            name: the name of the parameter.
            args: arguments of the class.
            importance_scores: an array of the shape of the parameter, by which elements are chosen in its place.
            kwargs: keyword arguments of the class.

        Returns:
            The method.

        Raises:
            ValueError: there is no such parameter, or the scores have another shape.
        """
        method = cls(*args, **kwargs)
        is_pruned = isinstance(rule_of(module, name), Pruned)
        cell = None if is_pruned else cell_of(module, name, cls.__name__)
        held = array_of(module, name)
        scores = held if importance_scores is None else np.asarray(importance_scores)
        _require_shape(scores, held, "importance_scores")
        if is_pruned:
            mask = getattr(module, f"{name}_mask")
            mask.value = PruningContainer(method).compute_mask(scores, mask.value).astype(mask.dtype)
            return method
        new = _mask_of(method, scores, np.ones_like(held))
        exchange(module, {name: Pruned()}, [name], {f"{name}_orig": cell, f"{name}_mask": Buffer(new)})
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """An array without the elements that the method leaves out.

        Args:
            t: the array.
            default_mask: a mask to begin with; ones by default.
            importance_scores: an array of the same shape by which elements are chosen.

        Returns:
            An array with zeros in their places.

        Raises:
            ValueError: shapes differ.
        """
        values = np.asarray(t.detach() if hasattr(t, "detach") else t)
        scores = values if importance_scores is None else np.asarray(importance_scores)
        _require_shape(scores, values, "importance_scores")
        mask = np.ones_like(values) if default_mask is None else np.asarray(default_mask)
        return t * _mask_of(self, scores, mask)

    def apply_mask(self, module: Module, name: str = "weight") -> Any:
        """The pruned parameter of a module."""
        return Pruned().compute(module, name)

    def remove(self, module: Module, name: str = "weight") -> None:
        """Undo `apply`; see `prune.remove`."""
        remove(module, name)


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one again, with zeros for what was left out.

    Args:
        module: the module.
        name: the name of the parameter.

    Returns:
        The module.

    Raises:
        ValueError: it is not pruned.
    """
    if not isinstance(rule_of(module, name), Pruned):
        raise ValueError(f"{name!r} of {module.described()} is not pruned{at_line(user_line())}")
    cell, value = getattr(module, f"{name}_orig"), array_of(module, name)
    cell.value = value
    exchange(module, {name: None}, [f"{name}_orig", f"{name}_mask"], {name: cell})
    return module


class PruningContainer(BasePruningMethod):
    """Several methods, of which the last one prunes what the ones before have left.

    Args:
        args: the methods.
    """

    PRUNING_TYPE = "global"

    def __init__(self, *args: BasePruningMethod) -> None:
        self._methods: list[BasePruningMethod] = []
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method at the end.

        Raises:
            TypeError: it is none.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(
                f"a PruningContainer holds pruning methods, not {type(method).__name__}{at_line(user_line())}"
            )
        self._methods.append(method)

    def __len__(self) -> int:
        return len(self._methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method, scores, mask = self._methods[-1], np.asarray(t), np.array(default_mask)
        kept: Any
        if method.PRUNING_TYPE == "unstructured":
            kept = mask == 1
        elif method.PRUNING_TYPE == "structured":
            kept = _slices_of(mask, method.dim)  # type: ignore[attr-defined]
        elif method.PRUNING_TYPE == "global":
            kept = ...
        else:
            raise ValueError(
                f"PRUNING_TYPE of {type(method).__name__} must be 'unstructured', 'structured' or 'global', not "
                f"{method.PRUNING_TYPE!r}{at_line(user_line())}"
            )
        mask[kept] = _mask_of(method, scores[kept], mask[kept])
        return mask


def _slices_of(mask: Array, dim: int) -> tuple[Any, ...]:
    """The index of the slices along an axis that are not all zeros."""
    axis = dim % mask.ndim
    others = tuple([i for i in range(mask.ndim) if i != axis])
    return (*(slice(None),) * axis, mask.sum(axis=others) != 0)


class Identity(BasePruningMethod):
    """Leaves out nothing, so that a parameter has a mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Leaves out elements at random, drawn from the generator that `nn.manual_seed` seeds.

    Args:
        amount: how many: an integer, or a fraction of all.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = _checked_amount(amount)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return _without_smallest(generator().random(t.shape), default_mask, self.amount)


class L1Unstructured(BasePruningMethod):
    """Leaves out the elements with the smallest absolute values.

    Args:
        amount: how many: an integer, or a fraction of all.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = _checked_amount(amount)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return _without_smallest(np.abs(np.asarray(t)), default_mask, self.amount)


class RandomStructured(BasePruningMethod):
    """Leaves out whole slices along an axis, at random.

    Args:
        amount: how many slices: an integer, or a fraction of all.
        dim: the axis.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount = _checked_amount(amount)
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        axis = _axis(t, self.dim)
        kept = _without_smallest(generator().random(t.shape[axis]), np.ones(t.shape[axis]), self.amount)
        return default_mask * _along(kept, axis, t.shape)


class LnStructured(BasePruningMethod):
    """Leaves out the slices along an axis that have the smallest norms.

    Args:
        amount: how many slices: an integer, or a fraction of all.
        n: the order of the norm, a number, `math.inf` or `-math.inf`; "fro" and "nuc" of slices that are matrices.
        dim: the axis.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        self.amount = _checked_amount(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        axis = _axis(t, self.dim)
        slices = np.moveaxis(np.asarray(t), axis, 0)
        norms = np.array([_norm(x, self.n) for x in slices])
        kept = _without_smallest(norms, np.ones(len(norms)), self.amount)
        return default_mask * _along(kept, axis, t.shape)


class CustomFromMask(BasePruningMethod):
    """Leaves out the elements where a mask is zero.

    Args:
        mask: array of the shape of the parameter.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = np.asarray(mask)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _require_shape(self.mask, np.asarray(t), "mask")
        return default_mask * self.mask


# What they share


def array_of(module: Module, name: str) -> Array:
    """The present value of a parameter, a copy."""
    with no_grad():
        return np.array(getattr(module, name))


def _mask_of(method: BasePruningMethod, scores: Array, mask: Array) -> Array:
    """What a method makes of a mask; it is given tensors, which may be changed."""
    with no_grad():
        found = np.asarray(method.compute_mask(sharing(scores.copy()), sharing(mask.copy())))
    _require_shape(found, mask, f"the mask of {type(method).__name__}")
    return found.astype(mask.dtype)


def _checked_amount(amount: Any) -> Any:
    """An amount of pruning, which is an integer or a fraction.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative, or a fraction above 1.
    """
    number: Any = amount
    if not isinstance(amount, Real):
        raise TypeError(
            f"amount must be an integer, or a fraction from 0.0 to 1.0, not {type(amount).__name__}"
            + at_line(user_line())
        )
    if number < 0 or (not hasattr(number, "__index__") and number > 1):
        raise ValueError(
            f"amount must be a nonnegative integer, or a fraction from 0.0 to 1.0, not {amount}{at_line(user_line())}"
        )
    return amount


def _without_smallest(scores: Array, mask: Any, amount: Any) -> Array:
    """A mask without those elements that have the smallest scores."""
    if hasattr(amount, "__index__"):
        count = operator.index(amount)
        if count > scores.size:
            raise ValueError(
                f"amount={count} elements or slices are to be left out, but there are {scores.size}"
                + at_line(user_line())
            )
    else:
        count = round(float(amount) * scores.size)
    new = np.array(mask)
    new.reshape(-1)[np.argsort(scores, axis=None, kind="stable")[:count]] = 0
    return new


def _axis(t: Any, dim: int) -> int:
    """The axis whose slices are left out.

    Raises:
        ValueError: the array is a vector.
        IndexError: there is no such axis.
    """
    ndim = len(t.shape)
    if ndim < 2:
        raise ValueError(
            f"slices of an array of shape {tuple(t.shape)} are single elements; take l1_unstructured or "
            f"random_unstructured{at_line(user_line())}"
        )
    if not -ndim <= dim < ndim:
        raise IndexError(f"dim={dim} is out of range for an array with {ndim} axes{at_line(user_line())}")
    return dim % ndim


def _norm(x: Array, n: Any) -> Any:
    """The norm of a slice.

    Raises:
        ValueError: it is unknown, or that of a matrix, and the slice is none.
    """
    if n == "nuc" and x.ndim == 2:
        return np.linalg.norm(x, "nuc")
    if n != "fro" and isinstance(n, str):
        raise ValueError(
            f"n must be a number, 'fro', or for slices that are matrices 'nuc', not {n!r} for slices of shape {x.shape}"
            + at_line(user_line())
        )
    return np.linalg.norm(x.ravel(), 2 if n == "fro" else n)


def _along(x: Array, axis: int, shape: Iterable[int]) -> Array:
    """A vector along an axis, to be broadcast to a shape."""
    return x.reshape([-1 if i == axis else 1 for i, _ in enumerate(shape)])


def _require_shape(x: Array, like: Array, what: str) -> None:
    if x.shape != like.shape:
        raise ValueError(
            f"{what} must have the shape {like.shape} of the parameter, not {x.shape}{at_line(user_line())}"
        )
