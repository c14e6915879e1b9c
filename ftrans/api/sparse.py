"""Sparse matrices of derivatives: sparse_jacobian, sparse_hessian, and both with the value of the function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

from ..base.pickles import makes_picklable
from ..base.progress import working
from ..base.source import at_line, user_line
from ..base.type_variables import Params
from .call import check_flag, name_of
from .call import named as renamed
from .derivatives import Argnums
from .prepared import Prepared
from .prepared_function import PreparedFunction
from .sparse_call import Options, SparseDerivative

Format = Literal["csr", "csc", "coo", "values", "dense", "bcoo"]
Triangle = Literal["full", "lower"]
JacobianMethod = Literal["auto", "elimination", "forward", "reverse", "bidirectional", "dense"]
HessianMethod = Literal["auto", "elimination", "star", "acyclic", "dense"]

Covariant = TypeVar("Covariant", covariant=True)


class SparseFunction(Protocol[Params, Covariant]):
    """A sparse derivative as a function, with the methods that it has, for type checkers."""

    def __call__(self, *args: Params.args, **kwargs: Params.kwargs) -> Covariant: ...

    def prepare(self, *args: Any, compile: bool = True, tune: bool = False, **kwargs: Any) -> Prepared:
        """The derivative for arguments of these types."""

    def operator(self, *args: Params.args, **kwargs: Params.kwargs) -> Any:
        """A linear operator of SciPy."""


@makes_picklable
def sparse_jacobian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    *,
    format: Format = "csr",
    method: JacobianMethod = "auto",
    pattern: Any = None,
    chunk_size: int | None = None,
    has_aux: bool = False,
) -> SparseFunction[Params, Any]:
    """Return a function that computes the Jacobian as a sparse matrix, and only the entries that can be non-zero.

    The pattern of these entries follows from the program of `f`, and is valid for all values of the arguments.  Row i
    belongs to element i of the result, column j to element j of the argument, in row-major order.

    Args:
        f: the function.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        format: "csr", "csc" and "coo" give a sparse array of SciPy, "bcoo" one of JAX, "dense" a matrix with zeros,
            and "values" the vector of the entries, in the order of `rows` and `cols` of `prepare(...)`.
        method: "elimination" composes the derivatives of single elements along the program.  "forward", "reverse" and
            "bidirectional" compute products with few vectors, one for each colour of a colouring of the columns, of the
            rows, or of both.  "dense" computes products with all unit vectors.  "auto" takes the cheapest method.
        pattern: the positions of the entries, if you know them: a `Sparsity`, a sparse matrix of SciPy or a matrix of
            booleans.  It is checked with products of the Jacobian and random vectors before it is used.
        chunk_size: number of products that are computed at once, to limit the memory; all by default.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.

    Returns:
        A function of the same arguments that returns the matrix.  For containers of results or arguments it returns
        containers of matrices, nested like those of `jacobian`.  If an argument is traced, a JAX array or a tensor, the
        formats of SciPy give a `SparseValues`, whose entries are of the same kind; a compiled function that returns it
        with NumPy entries gives the SciPy array.  The function has two methods that take the same arguments.
        `prepare(*args)` returns a `Prepared` for arguments of these types; use it for repeated calls.
        `operator(*args)` returns a linear operator of SciPy, for products without the matrix.

    Raises:
        TypeError: the argument or the result is not floating-point, or both are complex.
        ValueError: the format or the method is unknown, or the pattern is wrong; the message names an entry.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> J = ft.sparse_jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> J.toarray()
        array([[2., 1., 0.],
               [0., 3., 2.]])
    """
    options = Options(False, format, method, pattern, chunk_size, has_aux, with_value=False)
    return as_function(SparseDerivative(f, argnums, options, "sparse_jacobian"))


@makes_picklable
def value_and_sparse_jacobian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    *,
    format: Format = "csr",
    method: JacobianMethod = "auto",
    pattern: Any = None,
    chunk_size: int | None = None,
    has_aux: bool = False,
) -> SparseFunction[Params, tuple[Any, Any]]:
    """The value of a function and its sparse Jacobian, in one evaluation.

    Args:
        f: as for `sparse_jacobian`.
        argnums: as for `sparse_jacobian`.
        format: as for `sparse_jacobian`.
        method: as for `sparse_jacobian`.
        pattern: as for `sparse_jacobian`.
        chunk_size: as for `sparse_jacobian`.
        has_aux: as for `sparse_jacobian`.

    Returns:
        A function of the same arguments that returns `(value, matrix)`, or `((value, aux), matrix)`.

    Raises:
        TypeError: as `sparse_jacobian`.
        ValueError: as `sparse_jacobian`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> value, J = ft.value_and_sparse_jacobian(np.square)(np.array([1.0, 3.0]))
        >>> value, J.diagonal()
        (array([1., 9.]), array([2., 6.]))
    """
    options = Options(False, format, method, pattern, chunk_size, has_aux, with_value=True)
    return as_function(SparseDerivative(f, argnums, options, "value_and_sparse_jacobian"))


@makes_picklable
def sparse_hessian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    *,
    format: Format = "csr",
    method: HessianMethod = "auto",
    pattern: Any = None,
    chunk_size: int | None = None,
    has_aux: bool = False,
    triangle: Triangle = "full",
) -> SparseFunction[Params, Any]:
    """Return a function that computes the Hessian of a function with a real scalar result as a sparse matrix.

    Args:
        f: the function.
        argnums: as for `sparse_jacobian`.
        format: as for `sparse_jacobian`.
        method: "elimination" collects the second derivatives of single elements along the program.  "star" and
            "acyclic" compute products with few vectors, one for each colour of a colouring of that name.  With "star"
            the entries are read from the products; "acyclic" needs fewer colours, and finds the entries by
            substitution.  "dense" computes products with all unit vectors.  "auto" takes the cheapest method.
        pattern: as for `sparse_jacobian`, for the whole symmetric matrix.
        chunk_size: as for `sparse_jacobian`.
        has_aux: as for `sparse_jacobian`.
        triangle: "full", or "lower" for only the entries on and below the diagonal.

    Returns:
        A function of the same arguments, as for `sparse_jacobian`.  For a container of arguments (or several
        `argnums`) it returns a container of containers of matrices.

    Raises:
        TypeError: the argument is not floating-point, or the result is not a real scalar.
        ValueError: as `sparse_jacobian`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> H = ft.sparse_hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2))(np.array([1.0, 2.0, 3.0]))
        >>> H.toarray()
        array([[4., 2., 0.],
               [2., 6., 4.],
               [0., 4., 0.]])
    """
    options = Options(True, format, method, pattern, chunk_size, has_aux, False, is_lower(triangle))
    return as_function(SparseDerivative(f, argnums, options, "sparse_hessian"))


@makes_picklable
def value_and_sparse_hessian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    *,
    format: Format = "csr",
    method: HessianMethod = "auto",
    pattern: Any = None,
    chunk_size: int | None = None,
    has_aux: bool = False,
    triangle: Triangle = "full",
) -> SparseFunction[Params, tuple[Any, Any]]:
    """The value of a function and its sparse Hessian, in one evaluation.

    Args:
        f: as for `sparse_hessian`.
        argnums: as for `sparse_hessian`.
        format: as for `sparse_hessian`.
        method: as for `sparse_hessian`.
        pattern: as for `sparse_hessian`.
        chunk_size: as for `sparse_hessian`.
        has_aux: as for `sparse_hessian`.
        triangle: as for `sparse_hessian`.

    Returns:
        A function of the same arguments that returns `(value, matrix)`, or `((value, aux), matrix)`.

    Raises:
        TypeError: as `sparse_hessian`.
        ValueError: as `sparse_hessian`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> value, H = ft.value_and_sparse_hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
        >>> value, H.diagonal()
        (np.float64(9.0), array([ 6., 12.]))
    """
    options = Options(True, format, method, pattern, chunk_size, has_aux, True, is_lower(triangle))
    return as_function(SparseDerivative(f, argnums, options, "value_and_sparse_hessian"))


def as_function(derivative: SparseDerivative) -> Any:
    """A sparse derivative as users call it."""

    @functools.wraps(derivative.f)
    def sparse_derivative_of_f(*args: Any, **kwargs: Any) -> Any:
        given, named = derivative.arguments(*args, **kwargs)
        return derivative(*given, **named)

    def prepare(*args: Any, compile: bool = True, tune: bool = False, **kwargs: Any) -> Prepared:
        check_flag(compile, "prepare", "compile")
        check_flag(tune, "prepare", "tune")
        with working(f"preparing {derivative.name} of {name_of(derivative.f)}"):
            return Prepared(derivative, args, kwargs, bool(compile), bool(tune))

    def operator(*args: Any, **kwargs: Any) -> Any:
        traced = PreparedFunction(derivative, args, kwargs)
        return traced.operator(traced.inputs.leaves, is_compiled=False)

    function: Any = renamed(sparse_derivative_of_f, derivative.f, derivative.name)
    function.prepare, function.operator = prepare, operator
    return sparse_derivative_of_f


def is_lower(triangle: Any) -> bool:
    """Whether only the lower triangle is wanted.

    Raises:
        ValueError: it is neither "full" nor "lower".
    """
    if triangle not in ("full", "lower"):
        raise ValueError(f'triangle must be "full" or "lower", not {triangle!r}{at_line(user_line())}')
    return bool(triangle == "lower")
