"""Derivatives of functions of tensors: Jacobians, Hessians, and products with them."""

from __future__ import annotations

from typing import Any

from .recorded import (
    Function,
    Recorded,
    Strategy,
    Tensors,
    blocks_of,
    gradient_of,
    pulled,
    pushed,
    record,
    require_dependence,
    require_graph,
    vectors_like,
)
from .tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def jacobian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: Strategy = "reverse-mode",
) -> Any:
    """The Jacobian of a function of tensors.

    Args:
        func: the function; it takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors.
        create_graph: whether to record the computation, so that the Jacobian can be differentiated with respect to the
            inputs and to tensors that `func` closes over.
        strict: whether to raise if an output does not depend on an input, instead of returning zeros.
        vectorize: whether to compute all rows in one backward pass instead of one pass per row, with the memory of all
            rows.  A function with hooks, or one that changes values in place after use, is differentiated row by row
            in any case.
        strategy: "reverse-mode" computes rows, "forward-mode" columns, which is less work if there are fewer inputs
            than outputs.

    Returns:
        A tensor of the shape of the output followed by that of the input; for a tuple of inputs, a tuple of them; for a
        tuple of outputs, a tuple of these.

    Raises:
        TypeError: an input or output is not a tensor, or is complex such that half of the derivative would be lost.
        RuntimeError: the dtype of an input is not floating-point; or, with `strict`, an output does not depend on an
            input.
        ValueError: the strategy is unknown.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor([1.0, 2.0])
        >>> ft.autograd.functional.jacobian(lambda x: x**2, x)
        tensor([[2., 0.],
                [0., 4.]])
    """
    recorded = record(func, inputs, create_graph, "jacobian")
    blocks = blocks_of(recorded, create_graph, strict, vectorize, strategy)
    return recorded.like_outputs([recorded.like_inputs(row) for row in blocks])


def hessian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: Strategy = "reverse-mode",
) -> Any:
    """The Hessian of a function of tensors that returns a scalar.

    Args:
        func: the function; it takes tensors and returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors.
        create_graph: as for `jacobian`.
        strict: whether to raise if the result, or a first derivative, does not depend on an input.
        vectorize: as for `jacobian`.
        outer_jacobian_strategy: how the gradient is differentiated: as `strategy` of `jacobian`.

    Returns:
        A tensor of the shape of the input, twice; for a tuple of inputs, a tuple of tuples.

    Raises:
        TypeError: as `jacobian`.
        RuntimeError: as `jacobian`, or the result is not a scalar.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor([1.0, 2.0])
        >>> ft.autograd.functional.hessian(lambda x: (x**3).sum(), x)
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    recorded = gradient_of(func, inputs, create_graph, strict, "hessian")[1]
    if strict:
        require_dependence(recorded, "the derivative by input")
    blocks = blocks_of(recorded, create_graph, strict, vectorize, outer_jacobian_strategy)
    return recorded.like_inputs([recorded.like_inputs(row) for row in blocks])


# Products


def vjp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a function of tensors, and the product of a vector with its Jacobian.

    Args:
        func: the function; it takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors.
        v: the vector, like the outputs; by default 1 for a scalar output.
        create_graph: as for `jacobian`.
        strict: as for `jacobian`.

    Returns:
        `(outputs, product)`; the product is like the inputs.

    Raises:
        TypeError: an input or output is not a tensor.
        RuntimeError: as `jacobian`, or `v` does not fit the outputs.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor([1.0, 2.0])
        >>> ft.autograd.functional.vjp(lambda x: x**2, x, ft.autograd.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    recorded = record(func, inputs, create_graph, "vjp")
    product = _product(recorded, recorded, v, create_graph, strict, forward=False)
    return recorded.results(create_graph), recorded.like_inputs(product)


def jvp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a function of tensors, and the product of its Jacobian with a vector.

    Args:
        func: the function; it takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors.
        v: the vector, like the inputs; by default 1 for a scalar input.
        create_graph: as for `jacobian`.
        strict: as for `jacobian`.

    Returns:
        `(outputs, product)`; the product is like the outputs.

    Raises:
        TypeError: an input or output is not a tensor.
        RuntimeError: as `jacobian`, or `v` does not fit the inputs.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor([1.0, 2.0])
        >>> ft.autograd.functional.jvp(lambda x: x**2, x, ft.autograd.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    recorded = record(func, inputs, create_graph, "jvp")
    product = _product(recorded, recorded, v, create_graph, strict, forward=True)
    return recorded.results(create_graph), recorded.like_outputs(product)


def vhp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function of tensors, and the product of a vector with its Hessian: reverse over reverse.

    Args:
        func: the function; it takes tensors and returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors.
        v: the vector, like the inputs; by default 1 for a scalar input.
        create_graph: as for `jacobian`.
        strict: as for `hessian`.

    Returns:
        `(output, product)`; the product is like the inputs.

    Raises:
        TypeError: an input or output is not a tensor.
        RuntimeError: as `hessian`, or `v` does not fit the inputs.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor([1.0, 2.0])
        >>> ft.autograd.functional.vhp(lambda x: (x**3).sum(), x, ft.autograd.tensor([1.0, 1.0]))
        (tensor(9.), tensor([ 6., 12.]))
    """
    recorded, gradient = gradient_of(func, inputs, create_graph, strict, "vhp")
    product = _product(recorded, gradient, v, create_graph, strict, forward=False)
    return recorded.results(create_graph), recorded.like_inputs(product)


def hvp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function of tensors, and the product of its Hessian with a vector: forward over reverse.

    Args:
        func: the function; it takes tensors and returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors.
        v: the vector, like the inputs; by default 1 for a scalar input.
        create_graph: as for `jacobian`.
        strict: as for `hessian`.

    Returns:
        `(output, product)`; the product is like the inputs.

    Raises:
        TypeError: an input or output is not a tensor.
        RuntimeError: as `hessian`, or `v` does not fit the inputs.

    Example:
        >>> import ftrans as ft
        >>> x = ft.autograd.tensor([1.0, 2.0])
        >>> ft.autograd.functional.hvp(lambda x: (x**3).sum(), x, ft.autograd.tensor([1.0, 1.0]))
        (tensor(9.), tensor([ 6., 12.]))
    """
    recorded, gradient = gradient_of(func, inputs, create_graph, strict, "hvp")
    product = _product(recorded, gradient, v, create_graph, strict, forward=True)
    return recorded.results(create_graph), recorded.like_inputs(product)


def _product(
    recorded: Recorded, target: Recorded, v: Tensors | None, create_graph: bool, strict: bool, forward: bool
) -> list[Tensor]:
    """`v` times the Jacobian of `target`, the function or its gradient; if `forward`, the Jacobian times `v`."""
    like, name = recorded.inputs, "inputs"
    if target is recorded and not forward:
        like, name = recorded.outputs, "outputs"
    vectors = vectors_like(v, like, name, recorded.what)
    if strict and target is recorded:
        require_dependence(recorded)
    elif strict:
        require_graph(target.outputs, recorded, "gradient")
    product = (
        pushed(target, vectors, create_graph)
        if forward
        else pulled(target.outputs, vectors, target.inputs, create_graph)
    )
    if strict and create_graph:
        require_graph(product, recorded, recorded.what)
    return product


def __dir__() -> list[str]:
    return sorted(__all__)
