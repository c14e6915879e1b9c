"""associative_scan: all prefixes of a sequence under an associative function, in parallel."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import tree
from ..base.cell import Eager
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_variables import Value
from ..core.types import type_of
from ..numpy.joining import concatenate, stack
from ..numpy.manipulation import flip, reshape
from . import lending
from .call import check_function, name_of, type_name

Leaves = list[Any]
Combine = Callable[[Leaves, Leaves], Leaves]


@short_tracebacks
def associative_scan(fn: Callable[..., Any], elems: Value, reverse: bool = False, axis: int = 0) -> Value:
    """Combine all prefixes of a sequence by an associative function: cumulative sums, products, linear recurrences.

    It takes O(n) work in O(log n) rounds, each of which is one call of `fn` on many pairs at once (Blelloch, Prefix
    sums and their applications, 1990).  Reverse mode keeps the residuals of every round: O(n) memory.

    Args:
        fn: an associative function `(before, after) -> combination` of two containers like `elems`.  It is called on
            many pairs at once, along `axis`, and must be vectorised over that axis: `numpy.add`, or
            `lambda a, b: b @ a` for matrices of shape (n, k, k).
        elems: array, or container of arrays, with n elements along `axis`.
        reverse: whether to go from the last element to the first, as in `scan`; `before` then comes later in the
            sequence than `after`.
        axis: the axis of the sequence, in every array.

    Returns:
        A container like `elems`.  Its element i is the combination `fn(fn(x[0], x[1]), ... x[i])` of the elements up to
        and including i; with `reverse` that is `fn(fn(x[n-1], x[n-2]), ... x[i])`.

    Raises:
        TypeError: an array does not have that axis, or `fn` returns another structure, shape or dtype (shown by path).
        ValueError: the arrays have different numbers of elements.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.associative_scan(np.multiply, np.array([1.0, 2.0, 3.0, 4.0]))
        array([ 1.,  2.,  6., 24.])
    """
    check_function(fn, "associative_scan", "fn")
    leaves, structure = tree.flatten(elems)
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(f"axis of associative_scan must be an integer, not {axis!r}{at_line(user_line())}") from None
    axes = [_normalized(axis, x, elems, i) for i, x in enumerate(leaves)]
    sizes = [x.shape[a] for x, a in zip(leaves, axes, strict=True)]
    if len(set(sizes)) > 1:
        found = ", ".join(f"elems{path} has {n}" for path, n in zip(tree.paths(elems), sizes, strict=True))
        raise ValueError(
            f"associative_scan is given different numbers of elements along axis {axis}: {found}{at_line(user_line())}"
        )

    def combine(before: Leaves, after: Leaves) -> Leaves:
        # Its arguments are views of the sequence and of results.
        copied: Callable[[Any], Any] = np.copy
        pair = [[copied(x) if isinstance(x, Eager) else x for x in leaves] for leaves in (before, after)]
        out = lending.called(fn, *(tree.unflatten(structure, leaves) for leaves in pair))
        results, out_structure = tree.flatten(out)
        if out_structure != structure:
            raise TypeError(
                f"the function of associative_scan must return a container like its arguments: {structure} went in, "
                f"and {name_of(fn)} returned {out_structure}{at_line(user_line())}"
            )
        _require_types(fn, elems, before, results)
        return results

    if not leaves:
        return elems
    if reverse:
        leaves = [flip(x, a) for x, a in zip(leaves, axes, strict=True)]
    outs = _prefixes(combine, leaves, axes)
    if reverse:
        outs = [flip(x, a) for x, a in zip(outs, axes, strict=True)]
    return tree.unflatten(structure, [y.copy() for y in outs])


def _normalized(axis: int, x: Any, elems: Any, index: int) -> int:
    try:
        type = type_of(x)
    except TypeError:
        raise TypeError(
            f"associative_scan takes arrays and containers of them, but elems{tree.paths(elems)[index]} is "
            f"{type_name(x)}{at_line(user_line())}"
        ) from None
    if not -type.ndim <= axis < type.ndim:
        raise TypeError(
            f"associative_scan runs along axis {axis}, but elems{tree.paths(elems)[index]} is {type}"
            + at_line(user_line())
        )
    return axis % type.ndim


def _require_types(fn: Any, elems: Any, given: Leaves, results: Leaves) -> None:
    wrong = [
        f"\n  elems{path}: {type_of(x)} went in, {type_of(y)} was returned"
        for path, x, y in zip(tree.paths(elems), given, results, strict=True)
        if type_of(x) is not type_of(y)
    ]
    if wrong:
        raise TypeError(
            f"the function of associative_scan must keep shapes and dtypes, but {name_of(fn)} changes them; it is "
            f"called on many pairs at once, so it must work elementwise along the axis:"
            f"{''.join(wrong)}{at_line(user_line())}"
        )


def _prefixes(combine: Combine, xs: Leaves, axes: Sequence[int]) -> Leaves:
    """Combine neighbours; the prefixes of the combinations are every second result; then compute the others."""
    size = xs[0].shape[axes[0]]
    if size < 2:
        return xs

    def taken(ys: Leaves, start: int, stop: int | None, step: int = 1) -> Leaves:
        return [y[(slice(None),) * a + (slice(start, stop, step),)] for y, a in zip(ys, axes, strict=True)]

    odd = _prefixes(combine, combine(taken(xs, 0, size - 1, 2), taken(xs, 1, None, 2)), axes)
    if size == 2:
        even = taken(xs, 0, 1)
    else:
        later = combine(taken(odd, 0, (size - 1) // 2), taken(xs, 2, None, 2))
        even = [concatenate([x, y], axis=a) for x, y, a in zip(taken(xs, 0, 1), later, axes, strict=True)]
    return [_alternating(x, y, a) for x, y, a in zip(even, odd, axes, strict=True)]


def _alternating(even: Any, odd: Any, axis: int) -> Any:
    """The elements of two arrays in turn; the first may have one more."""
    before, pairs = (slice(None),) * axis, odd.shape[axis]
    whole = stack([even[(*before, slice(0, pairs))], odd], axis=axis + 1)
    joined = reshape(whole, (*odd.shape[:axis], 2 * pairs, *odd.shape[axis + 1 :]))
    if even.shape[axis] == pairs:
        return joined
    return concatenate([joined, even[(*before, slice(pairs, None))]], axis=axis)
