"""Tables of vectors: rows that are looked up by index, and sums, means or maxima of bags of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...api.call import record_or_run
from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...numpy import take
from ...ops.indexing import scatter_add, scatter_set
from ...ops.literals import full
from .arguments import array, checked_indices, concrete, described, shape_of
from .distances import norm
from .entry import functional

__all__ = ["embedding", "embedding_bag"]

MODES = ("mean", "sum", "max")


@functional
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Look up rows of a matrix by index.

    Args:
        input: integers of any shape, from 0 to `rows - 1`.
        weight: matrix of shape (rows, D).
        padding_idx: index of a row that derivatives treat as constant.
        max_norm: rows with a greater norm are scaled down to it.  Unlike torch, this leaves `weight` as it is; the
            layer `nn.Embedding` puts the rows into its table.
        norm_type: order of that norm.
        scale_grad_by_freq: whether the gradient of a row is divided by how often it is looked up.
        sparse: accepted as in torch, without effect: gradients are dense.

    Returns:
        An array of shape (*input.shape, D).

    Raises:
        ValueError: `weight` is not a matrix, or `padding_idx` is out of range.
        TypeError: `input` does not hold integers.
        IndexError: an index is out of range.  Compiled code, which cannot check that, returns NaN.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.embedding(np.array([1, 0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[3., 4.],
               [1., 2.]])
    """
    return _rows("embedding", input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)


def _rows(
    what: str,
    input: Any,
    weight: Any,
    padding_idx: int | None,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
) -> Any:
    shape = shape_of(weight)
    if len(shape) != 2:
        raise ValueError(f"weight of {what} must be a matrix (rows, D), not {described(weight)}{at_line(user_line())}")
    rows = shape[0]
    input = checked_indices(input, rows, what, "input")
    chosen = take(weight, input, axis=0)
    if max_norm is not None:
        chosen = chosen + stop_gradient(scaled_down(chosen, max_norm, norm_type) - chosen)
    if scale_grad_by_freq:
        counts = np.bincount(np.reshape(input, -1), minlength=rows)
        shares = (1 / take(counts, input, axis=0)).astype(chosen.dtype)
        fixed = stop_gradient(chosen)
        chosen = fixed + (chosen - fixed) * shares[..., None]
    if concrete(input) is None:
        chosen = np.where(((input < 0) | (input >= rows))[..., None], np.nan, chosen)
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ValueError(
                f"padding_idx={padding_idx} of {what} is out of range for weight "
                f"{described(weight)}{at_line(user_line())}"
            )
        chosen = np.where((input == padding_idx % rows)[..., None], stop_gradient(chosen), chosen)
    return chosen


def scaled_down(rows: Any, max_norm: float, norm_type: float) -> Any:
    """Rows of which none has a norm greater than `max_norm`."""
    norms = norm(rows, norm_type, -1, keepdims=True)
    # The small number in the divisor is torch's.
    return np.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)


@functional
def with_rows_scaled_down(weight: Any, input: Any, max_norm: float, norm_type: float) -> Any:
    """A table in which the rows at some indices have been scaled down."""

    def record(operands: list[Tracer]) -> list[Any]:
        weight, rows, places = operands
        return [scatter_set(weight, rows, places)]

    places = np.reshape(input, -1)
    rows = scaled_down(take(weight, places, axis=0), max_norm, norm_type)
    (out,) = record_or_run("embedding", record, [weight, rows, places])
    return out


@functional
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sums, means or maxima of bags of rows of a matrix.

    Args:
        input: integers from 0 to `rows - 1`: of shape (B, N) for B bags of N indices each, or of shape (N,) for all
            bags one after another.
        weight: matrix of shape (rows, D).
        offsets: for `input` of shape (N,), where each of the B bags begins; the first begins at 0.
        max_norm: rows with a greater norm are scaled down to it; as for `embedding`.
        norm_type: order of that norm.
        scale_grad_by_freq: whether the gradient of a row is divided by how often it is looked up.
        mode: "mean", "sum" or "max".
        sparse: accepted as in torch, without effect: gradients are dense.
        per_sample_weights: factors of the rows, of the shape of `input`, with mode "sum".
        include_last_offset: whether `offsets` has one element more, the end of the last bag.
        padding_idx: index that is left out of the bags.

    Returns:
        An array of shape (B, D); bags without rows give 0.

    Raises:
        ValueError: shapes do not match, or `mode` is unknown.
        TypeError: `input` or `offsets` do not hold integers.
        IndexError: an index is out of range.

    Example:
        >>> import ftrans.nn.functional as F
        >>> table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> F.embedding_bag(np.array([0, 1, 2]), table, np.array([0, 2]), mode="sum")
        array([[4., 6.],
               [5., 6.]])
    """
    what = "embedding_bag"
    input = array(input)
    _check_bags(what, input, offsets, mode, per_sample_weights)
    chosen = _rows(what, input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    kept: Any = np.ones((), np.bool_) if padding_idx is None else input != padding_idx % shape_of(weight)[0]
    if per_sample_weights is not None:
        chosen = chosen * per_sample_weights[..., None]
    if offsets is None:
        return _of_bags(chosen, np.broadcast_to(kept, input.shape), mode)
    offsets = checked_indices(offsets, input.shape[0] + 1, what, "offsets")
    count = offsets.shape[0] - bool(include_last_offset)
    numbers = np.arange(input.shape[0])
    if mode == "max":
        # One row of places for each bag, as long as the longest one.
        ends = np.concatenate([offsets[1:count], np.full(1, input.shape[0])])
        known = concrete(offsets)
        longest = input.shape[0] if known is None else int(max(concrete(ends) - known[:count], default=0))
        places = offsets[:count, None] + np.arange(longest)
        inside = places < ends[:, None]
        places = np.where(inside, places, 0)
        kept = inside & take(np.broadcast_to(kept, input.shape), places, axis=0)
        return _of_bags(take(chosen, places, axis=0), kept, mode)
    bags = np.searchsorted(offsets[:count], numbers, side="right") - 1
    factors = np.broadcast_to(kept, input.shape).astype(chosen.dtype)
    sums = _summed(chosen * factors[:, None], bags, count)
    return sums if mode == "sum" else sums / np.maximum(_summed(factors[:, None], bags, count), 1)


def _check_bags(what: str, input: Any, offsets: Any, mode: str, per_sample_weights: Any) -> None:
    if mode not in MODES:
        raise ValueError(f"mode of {what} must be 'mean', 'sum' or 'max', not {mode!r}{at_line(user_line())}")
    if len(input.shape) not in (1, 2) or (len(input.shape) == 1) == (offsets is None):
        raise ValueError(
            f"{what} takes input (B, N), or input (N,) with offsets, where each bag begins, not {described(input)} "
            f"{'without offsets' if offsets is None else 'with offsets ' + described(offsets)}{at_line(user_line())}"
        )
    if per_sample_weights is None:
        return
    if mode != "sum":
        raise ValueError(f"per_sample_weights of {what} need mode='sum', not {mode!r}{at_line(user_line())}")
    if shape_of(per_sample_weights) != tuple(input.shape):
        raise ValueError(
            f"per_sample_weights of {what} must have the shape of input, {described(input)}, not "
            f"{described(per_sample_weights)}{at_line(user_line())}"
        )


def _of_bags(rows: Any, kept: Any, mode: str) -> Any:
    """The sums, means or maxima of rows of shape (B, N, D) over N, of those that are kept."""
    if mode == "max":
        if rows.shape[1] == 0:
            return np.sum(rows, axis=1)
        values = np.where(kept[..., None], rows, -math.inf)
        greatest = np.take_along_axis(values, np.argmax(values, axis=1)[:, None], axis=1)[:, 0]
        return np.where(np.any(kept, axis=1)[:, None], greatest, 0)
    sums = np.sum(np.where(kept[..., None], rows, 0), axis=1)
    counts = np.maximum(np.sum(kept, axis=1), 1).astype(sums.dtype)
    return sums if mode == "sum" else sums / counts[:, None]


def _summed(rows: Any, bags: Any, count: int) -> Any:
    """The sums of the rows of each bag."""

    def record(operands: list[Tracer]) -> list[Any]:
        rows, bags = operands
        return [scatter_add(full((count, rows.shape[1]), 0, rows.dtype), rows, bags)]

    (out,) = record_or_run("embedding_bag", record, [rows, bags])
    return out
