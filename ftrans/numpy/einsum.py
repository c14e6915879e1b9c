"""Einstein summation: an expression over labelled axes, contracted two operands at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..ops.indexing import scatter_set
from .delivery import deliver
from .dispatch import implements
from .manipulation import read_diagonal
from .products import Labels, arranged, contract
from .promotion import asarray, broadcast_to, cast, reshaped, strong_dtype
from .views import Permuted, view_of

__all__ = ["einsum"]

_ELLIPSIS = "..."


def _error(message: str) -> ValueError:
    return ValueError(f"einsum: {message}{at_line(user_line())}")


def _labels_in(text: str) -> Labels:
    """The labels of one term: letters, or an ellipsis."""
    labels: list[str] = []
    rest = text.replace(" ", "")
    while rest:
        if rest.startswith(_ELLIPSIS):
            labels.append(_ELLIPSIS)
            rest = rest[3:]
        elif rest[0].isalpha():
            labels.append(rest[0])
            rest = rest[1:]
        else:
            raise _error(f"character {rest[0]!r} in the subscripts {text!r} is no letter")
    return tuple(labels)


def _parse(args: Sequence[Any]) -> tuple[list[Labels], Labels | None, list[Any]]:
    """Labels of the operands and of the result (None if it is implicit), and the operands."""
    if isinstance(args[0], str):
        subscripts, *operands = args
        left, arrow, right = subscripts.partition("->")
        terms = [_labels_in(term) for term in left.split(",")]
        return terms, (_labels_in(right) if arrow else None), operands
    *pairs, last = args if len(args) % 2 else (*args, None)

    def from_list(labels: Sequence[Any]) -> Labels:
        return tuple(_ELLIPSIS if a is Ellipsis else int(a) for a in labels)

    return [from_list(a) for a in pairs[1::2]], None if last is None else from_list(last), list(pairs[::2])


def _expanded(labels: Labels, count: int) -> Labels:
    """Labels whose ellipsis is replaced by labels of `count` axes, counted from the last."""
    if _ELLIPSIS not in labels:
        return labels
    at = labels.index(_ELLIPSIS)
    return (*labels[:at], *((_ELLIPSIS, i) for i in range(count - 1, -1, -1)), *labels[at + 1 :])


def _result_labels(terms: Sequence[Labels], out: Labels | None, ellipsis_ndim: int) -> Labels:
    if out is not None:
        result = _expanded(out, ellipsis_ndim)
        if len(set(result)) < len(result):
            raise _error(f"the result has a subscript twice: {out}")
        unknown = [a for a in result if not any(a in term for term in terms)]
        if unknown:
            raise _error(f"the result has a subscript that no operand has: {unknown[0]!r}")
        return result
    counts = Counter(a for term in terms for a in term)
    single = sorted(a for a, n in counts.items() if n == 1 and not isinstance(a, tuple))
    return (*_expanded((_ELLIPSIS,), ellipsis_ndim), *single)


def _without_repeats(x: Tracer, labels: Labels) -> tuple[Tracer, Labels]:
    """The diagonal of axes that have one label."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            if x.shape[i] != x.shape[j]:
                raise _error(f"axes of {x.type} with the subscript {label!r} differ in size")
            x = read_diagonal(x, 0, i, j)
            labels = (*(a for k, a in enumerate(labels) if k not in (i, j)), label)
    return x, labels


class _Diagonals:
    """The elements of one operand where axes that have one label meet."""

    def __init__(self, labels: Labels, target: Labels) -> None:
        self.labels = labels
        self.target = target

    def read(self, base: Tracer) -> Tracer:
        return arranged(*_without_repeats(base, self.labels), self.target)

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        places = self.numpy(np.arange(base.size).reshape(base.shape))
        flat = scatter_set(reshaped(base, (base.size,)), new, places, unique=True)
        return reshaped(flat, base.shape)

    def numpy(self, base: Any) -> Any:
        numbers = {a: i for i, a in enumerate(self.labels)}
        return np.einsum(base, [numbers[a] for a in self.labels], [numbers[a] for a in self.target])


def _order(subscripts: Sequence[Labels], out: Labels, xs: Sequence[Tracer], optimize: Any) -> list[tuple[int, ...]]:
    """The pairs to contract, one after the other: those of `numpy.einsum_path` for more than two operands."""
    if len(xs) <= 2 or optimize is False:
        return [(0, 1)] * (len(xs) - 1)
    letters = {a: chr(ord("a") + i) for i, a in enumerate(dict.fromkeys(a for term in subscripts for a in term))}
    if len(letters) > 26:
        return [(0, 1)] * (len(xs) - 1)
    text = ",".join("".join(letters[a] for a in term) for term in subscripts)
    shapes = [np.broadcast_to(np.empty((), bool), x.shape) for x in xs]
    path, _ = np.einsum_path(f"{text}->{''.join(letters[a] for a in out)}", *shapes, optimize="greedy")
    return list(path[1:])


@implements(np.einsum)
def einsum(
    *args: Any, out: Any = None, optimize: Any = True, dtype: Any = None, order: str = "K", casting: str = "safe"
) -> Any:
    """The Einstein summation of the operands; subscripts are a string, or lists of axis labels."""
    terms, result, operands = _parse(args)
    xs = [asarray(x) for x in operands]
    if len(xs) != len(terms):
        raise _error(f"{len(terms)} terms of subscripts for {len(xs)} operands")
    extra = []
    for x, term in zip(xs, terms, strict=True):
        count = x.ndim - len(term) + (_ELLIPSIS in term)
        if count < 0 or (count and _ELLIPSIS not in term):
            raise _error(f"subscripts {term} do not fit an operand of {x.type}")
        extra.append(count if _ELLIPSIS in term else 0)
    labels = [_expanded(term, n) for term, n in zip(terms, extra, strict=True)]
    ellipsis_ndim = max(extra, default=0)
    if result is not None and _ELLIPSIS not in result and ellipsis_ndim:
        raise _error("the operands have an ellipsis for axes that the result leaves out; add '...' to it")
    target = _result_labels(labels, result, ellipsis_ndim)
    kind = strong_dtype(*xs) if dtype is None else np.dtype(dtype)
    for x in xs:
        if not np.can_cast(x.dtype, kind, casting):
            raise TypeError(
                f"einsum cannot cast {x.type} to {kind} with casting rule {casting!r}; give casting='unsafe' or "
                f"'same_kind'{at_line(user_line())}"
            )
    if len(xs) == 1 and set(target) == set(labels[0]) and xs[0].dtype == kind and out is None:
        (x,), (term,) = xs, labels
        is_permutation = len(term) == len(target)
        return view_of(x, Permuted(tuple(map(term.index, target))) if is_permutation else _Diagonals(term, target))
    pairs = [_without_repeats(cast(x, kind), term) for x, term in zip(xs, labels, strict=True)]
    sizes = _sizes(pairs)
    for chosen in _order([term for _, term in pairs], target, [x for x, _ in pairs], optimize):
        rest = [pair for i, pair in enumerate(pairs) if i not in chosen]
        picked = [pairs[i] for i in chosen]
        while len(picked) > 1:
            (x, x_labels), (y, y_labels), *others = picked
            later = [*rest, *others]
            kept = tuple(
                a for a in dict.fromkeys((*x_labels, *y_labels)) if a in target or any(a in term for _, term in later)
            )
            picked = [(contract(x, x_labels, y, y_labels, kept), kept), *others]
        pairs = [*rest, *picked]
    ((x, term),) = pairs
    alone = tuple(i for i, a in enumerate(term) if a not in target)
    if alone:
        x, term = np.sum(x, alone, x.dtype), tuple(a for a in term if a in target)
    x = arranged(x, term, target)
    return deliver(broadcast_to(x, tuple(sizes[a] for a in target)), out, "einsum")


def _sizes(pairs: Sequence[tuple[Tracer, Labels]]) -> dict[Any, int]:
    """The size that each label stands for; a size of 1 gives way to another."""
    sizes: dict[Any, int] = {}
    for x, labels in pairs:
        for a, n in zip(labels, x.shape, strict=True):
            known = sizes.get(a, 1)
            if known != 1 and n not in (1, known):
                raise _error(f"the subscript {a!r} stands for axes of sizes {known} and {n}")
            sizes[a] = n if known == 1 else known
    return sizes
