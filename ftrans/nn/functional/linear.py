"""Linear maps, and one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...numpy.promotion import has_tracer
from .arguments import array, checked_indices, concrete, described, matrix_product, shape_of
from .entry import functional

__all__ = ["bilinear", "linear", "one_hot"]


@functional
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`x @ weight.T + bias`.

    Args:
        input: array of shape (..., in).
        weight: matrix of shape (out, in), or a vector of shape (in,).
        bias: vector of shape (out,).

    Returns:
        An array of shape (..., out); (...) if `weight` is a vector.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.linear(np.array([1.0, 2.0]), np.array([[3.0, 4.0]]), np.array([0.5]))
        array([11.5])
    """
    shape, of_weight = shape_of(input), shape_of(weight)
    if not shape or len(of_weight) not in (1, 2) or shape[-1] != of_weight[-1]:
        expected = f"(..., {of_weight[-1]})" if of_weight else "(..., in)"
        raise ValueError(
            f"linear with weight {described(weight)}, which is (out, in), takes input of shape {expected}, not "
            f"{described(input)}{at_line(user_line())}"
        )
    if bias is not None and shape_of(bias) not in (of_weight[:-1], ()):
        raise ValueError(
            f"bias of linear with weight {described(weight)} must have shape {of_weight[:-1]}, not {described(bias)}"
            + at_line(user_line())
        )
    if has_tracer(input) or has_tracer(weight):
        # One product over the last axes of both, which leaves no transpose to the derivative with respect to weights.
        product = np.inner(input, weight)
    else:
        product = matrix_product(input, weight.T if len(of_weight) == 2 else weight)
    return product if bias is None else product + bias


@functional
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """`x1 @ weight[k] @ x2 + bias[k]` for every `k`.

    Args:
        input1: array of shape (..., in1).
        input2: array of shape (..., in2).
        weight: array of shape (out, in1, in2).
        bias: vector of shape (out,).

    Returns:
        An array of shape (..., out).

    Raises:
        ValueError: shapes do not match.
    """
    first, second, of_weight = shape_of(input1), shape_of(input2), shape_of(weight)
    if len(of_weight) != 3 or first[:-1] != second[:-1] or (*first[-1:], *second[-1:]) != of_weight[1:]:
        raise ValueError(
            f"bilinear takes arrays (..., in1), (..., in2) and weight (out, in1, in2), not {described(input1)}, "
            f"{described(input2)} and {described(weight)}{at_line(user_line())}"
        )
    if bias is not None and shape_of(bias) != of_weight[:1]:
        raise ValueError(
            f"bias of bilinear must have shape {of_weight[:1]}, not {described(bias)}{at_line(user_line())}"
        )
    count, in1, in2 = of_weight
    # As matrix products: first x1 with all matrices, then one product of vectors for each row.
    partial = matrix_product(input1, np.transpose(weight, (1, 0, 2)).reshape(in1, count * in2)).reshape(
        *first[:-1], count, in2
    )
    product = matrix_product(partial, input2[..., None])[..., 0]
    return product if bias is None else product + bias


@functional
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """One-hot vectors: 1 at the given index, else 0.

    Args:
        tensor: integers of any shape, from 0 to `num_classes - 1`.
        num_classes: length of the vectors; by default one more than the largest index.

    Returns:
        An int64 array of shape (*tensor.shape, num_classes).

    Raises:
        TypeError: `tensor` does not hold integers; or `num_classes` is missing and the integers are traced.
        IndexError: an index is out of range.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.one_hot(np.array([0, 2]))
        array([[1, 0, 0],
               [0, 0, 1]])
    """
    tensor = array(tensor)
    if num_classes < 0:
        values = concrete(tensor)
        if values is None:
            raise TypeError(
                "one_hot of a traced value needs num_classes, since the largest integer is not known when the "
                f"function is traced{at_line(user_line())}"
            )
        if not values.size:
            raise ValueError(f"one_hot of an empty array needs num_classes{at_line(user_line())}")
        num_classes = int(values.max()) + 1
    tensor = checked_indices(tensor, num_classes, "one_hot", "tensor")
    return (tensor[..., None] == np.arange(num_classes)).astype(np.int64)
