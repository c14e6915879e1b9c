"""Matrices of first and second derivatives: jacobian, jacfwd, jacrev, hessian; products with the Hessian: hvp, vhp."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Concatenate, Literal, overload

from ..base import tree
from ..base.memory_size import memory_of_machine
from ..base.pickles import makes_picklable
from ..base.progress import working
from ..base.source import at_line, user_line
from ..base.type_variables import Array, First, Number, Params, Result, Scalar, Transformed
from ..control.subprograms import cut
from ..core.types import ArrayType, is_complex, is_inexact
from ..structure.dense import dense
from .call import Arguments, Traced, as_argnums, as_tuple, check_function, name_of, named, run
from .derivatives import Argnums, Function, active_inputs, grad, jvp, require_complex, trace_at, vjp
from .foreign_arrays import takes_foreign_arrays
from .targets import unflatten_square

Mode = Literal["auto", "forward", "reverse"]

# Products give smaller matrices in less time than it takes to find their structure.
_LARGE = 200_000
# Arrays of fewer bytes fit into any machine.
_NEVER_TOO_LARGE = 1 << 30


@overload
def jacobian(
    f: Callable[Concatenate[Array[Scalar], Params], Array[Any] | Number],
    argnums: Literal[0] = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Transformed[Concatenate[Array[Scalar], Params], Array[Scalar]]: ...
@overload
def jacobian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Transformed[Params, Any]: ...
@makes_picklable
def jacobian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[Params, Any]:
    """Return a function that computes the Jacobian: the derivative of each result element by each argument element.

    Args:
        f: the function.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        mode: "forward" computes one tangent per element of the arguments, "reverse" one cotangent per element of the
            result, and "auto" the smaller number of them.  If a large Jacobian is mostly zero for all arguments, "auto"
            computes only the other elements, as `sparse_jacobian` does.
        chunk_size: number of tangents or cotangents that are computed at once, in a loop, to limit the memory; all by
            default.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.
        holomorphic: whether `f` is a holomorphic function of complex arguments, which is not checked.  Without it,
            arguments or results can be complex, but not both: complex results of real arguments (in forward mode), or
            real results of complex arguments (in reverse mode, which gives df/dx - i df/dy).

    Returns:
        A function of the same arguments.  For an array result of shape `s` and an array argument of shape `t` it
        returns an array of shape `s + t`; containers of results hold containers of arguments.

    Raises:
        TypeError: the argument is not floating-point, or arguments and results are complex without `holomorphic`.
        MemoryError: the Jacobian does not fit in the memory of this machine.
        ValueError: the mode is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    with_value = value_and_jacobian(f, argnums, mode, chunk_size, has_aux, holomorphic)

    @functools.wraps(f)
    def jacobian_of_f(*args: Any, **kwargs: Any) -> Any:
        value, blocks = with_value(*args, **kwargs)
        return (blocks, value[1]) if has_aux else blocks

    return named(takes_foreign_arrays(jacobian_of_f), f, "jacobian")


@overload
def value_and_jacobian(
    f: Callable[Concatenate[Array[Scalar], Params], Result],
    argnums: Literal[0] = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Transformed[Concatenate[Array[Scalar], Params], tuple[Result, Array[Scalar]]]: ...
@overload
def value_and_jacobian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Transformed[Params, tuple[Any, Any]]: ...
@makes_picklable
def value_and_jacobian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[Params, tuple[Any, Any]]:
    """The value of a function and its Jacobian, in one evaluation.

    Args:
        f: as for `jacobian`.
        argnums: as for `jacobian`.
        mode: as for `jacobian`.
        chunk_size: as for `jacobian`.
        has_aux: as for `jacobian`.
        holomorphic: as for `jacobian`.

    Returns:
        A function of the same arguments that returns `(value, jacobian)`, or `((value, aux), jacobian)`.

    Raises:
        TypeError: the argument is not floating-point.
        ValueError: the mode is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.value_and_jacobian(lambda x: 2 * x)(np.array([1.0]))
        (array([2.]), array([[2.]]))
    """
    check_function(f, "jacobian")
    argnums = as_argnums(argnums, "jacobian")
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f'mode must be "auto", "forward" or "reverse", not {mode!r}{at_line(user_line())}')
    _check_chunk_size(chunk_size)

    @functools.wraps(f)
    def value_and_jacobian_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, rebuild_aux = trace_at(f, args, kwargs, argnums, "jacobian", has_aux)
        count = traced.structure.num_leaves
        program = traced.program
        out_size = sum(t.size for t in program.out_types[:count])
        columns = sum(t.size for t in chosen.types)
        forward = mode == "forward" or (mode == "auto" and columns <= out_size)
        complex_in = any(is_complex(t.dtype) for t in chosen.types)
        complex_out = any(is_complex(t.dtype) for t in program.out_types[:count])
        if mode == "auto" and complex_in != complex_out:
            forward = complex_out
        if holomorphic:
            require_complex(chosen, traced, f, "jacobian")
        elif complex_in if forward else complex_out:
            _refuse_complex(f, forward, both=complex_in and complex_out)
        _require_memory(f, "jacobian", program.out_types[:count], columns)
        active = active_inputs(chosen, traced)
        derived = None
        if mode == "auto" and chunk_size is None and out_size * columns >= _LARGE:
            # Imported where it is needed, since most Jacobians are small.
            from ..structure.dense.dense_by_entries import jacobian_by_entries

            derived = jacobian_by_entries(program, active, count)
        if derived is None:
            derived = dense.jacobian(program, active, count, "forward" if forward else "reverse", chunk_size)
        if chunk_size is None:
            outs = run(derived, [*chosen.leaves, *traced.captured])
        else:
            with working(f"jacobian of {name_of(f)}, {out_size:,} x {columns:,}, in chunks of {chunk_size:,}"):
                outs = run(derived, [*chosen.leaves, *traced.captured])
        total, width = len(program.outputs), len(chosen.leaves)
        blocks = outs[total:]
        rows = [tree.unflatten(chosen.structure, blocks[j * width : (j + 1) * width]) for j in range(count)]
        value = tree.unflatten(traced.structure, outs[:count])
        if has_aux:
            value = (value, rebuild_aux(outs[count:total]))
        return value, tree.unflatten(traced.structure, rows)

    return named(takes_foreign_arrays(value_and_jacobian_of_f), f, "value_and_jacobian")


def _require_memory(f: Function, what: str, results: Sequence[ArrayType], columns: int) -> None:
    """Raise if the derivatives of results, each by `columns` numbers or pairs of them, exceed this machine's memory.

    Raises:
        MemoryError: they do.
    """
    needed = columns * sum(type.nbytes for type in results)
    if needed < _NEVER_TOO_LARGE:
        return
    present = memory_of_machine()
    if present is None or needed <= present:
        return
    other = "hvp, or linearize of grad, gives products with it" if what == "hessian" else "jvp and vjp give products"
    raise MemoryError(
        f"the {what} of {name_of(f)} as an array has {needed / 2**30:,.1f} GiB, and this machine has "
        f"{present / 2**30:,.1f} GiB of memory; sparse_{what} computes only the entries that are not zero everywhere, "
        f"and {other}{at_line(user_line())}"
    )


def _check_chunk_size(chunk_size: object) -> None:
    """Raise unless a number of tangents is one.

    Raises:
        ValueError: it is not.
    """
    if chunk_size is not None and not (isinstance(chunk_size, Integral) and int(chunk_size) > 0):
        raise ValueError(f"chunk_size must be a positive integer or None, not {chunk_size!r}{at_line(user_line())}")


def _refuse_complex(f: Function, forward: bool, both: bool, what: str = "Jacobian") -> None:
    """Raise: one matrix of complex numbers does not say how complex results move with complex arguments.

    Raises:
        TypeError: always.
    """
    mode = "forward mode with complex arguments" if forward else "reverse mode with complex results"
    other = "reverse" if forward else "forward"
    way = f'use mode="{other}"'
    if both:
        way = (
            "give holomorphic=True if it has complex derivatives; if not, differentiate the real and imaginary parts, "
            "or use jvp and vjp"
        )
    raise TypeError(
        f"the {what} of {name_of(f)} by {mode} would lose half of the derivative; {way}{at_line(user_line())}"
    )


@overload
def jacfwd(
    f: Callable[Concatenate[Array[Scalar], Params], Array[Any] | Number],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Transformed[Concatenate[Array[Scalar], Params], Array[Scalar]]: ...
@overload
def jacfwd(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Transformed[Params, Any]: ...
@makes_picklable
def jacfwd(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Callable[Params, Any]:
    """Return a function that computes the Jacobian by forward mode: `jacobian` with `mode="forward"`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.jacfwd(np.sin)(0.0)
        np.float64(1.0)
    """
    return jacobian(f, argnums, "forward", chunk_size, has_aux, holomorphic)


@overload
def jacrev(
    f: Callable[Concatenate[Array[Scalar], Params], Array[Any] | Number],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Transformed[Concatenate[Array[Scalar], Params], Array[Scalar]]: ...
@overload
def jacrev(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Transformed[Params, Any]: ...
@makes_picklable
def jacrev(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Callable[Params, Any]:
    """Return a function that computes the Jacobian by reverse mode: `jacobian` with `mode="reverse"`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.jacrev(np.sin)(0.0)
        np.float64(1.0)
    """
    return jacobian(f, argnums, "reverse", chunk_size, has_aux, holomorphic)


@overload
def hessian(
    f: Callable[Concatenate[Array[Scalar], Params], Array[Any] | Number],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Transformed[Concatenate[Array[Scalar], Params], Array[Scalar]]: ...
@overload
def hessian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Transformed[Params, Any]: ...
@makes_picklable
def hessian(
    f: Callable[Params, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Callable[Params, Any]:
    """Return a function that computes the second derivatives of a function, by forward over reverse mode.

    If a large Hessian is mostly zero for all arguments, only the other elements are computed, as in `sparse_hessian`.

    Args:
        f: the function.  Its result is real: a scalar, an array, or a container of them.
        argnums: the position of the argument, or a sequence of positions.
        has_aux: whether `f` returns a pair `(out, aux)`, of which only `out` is differentiated.
        chunk_size: number of tangents that are computed at once, in a loop, to limit the memory; by default all, or as
            many as fit into the processor's cache.
        holomorphic: as for `grad`: the second complex derivatives.

    Returns:
        A function of the same arguments.  For a scalar result and an array argument of shape `s` it returns an array of
        shape `s + s`; for an argument that is a container (or several `argnums`), a container of containers.  For a
        result of shape `r` the arrays have the shape `r + s + s`.  A container of results holds such arrays for each
        result.

    Raises:
        TypeError: the argument or a result is not floating-point, or a result is complex.
        MemoryError: the second derivatives do not fit in the memory of this machine.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
        array([[4., 2.],
               [2., 0.]])
    """
    check_function(f, "hessian")
    argnums = as_argnums(argnums, "hessian")
    _check_chunk_size(chunk_size)

    @functools.wraps(f)
    def hessian_of_f(*args: Any, **kwargs: Any) -> Any:
        chosen, traced, rebuild_aux = trace_at(f, args, kwargs, argnums, "hessian", has_aux)
        _check_second(chosen, traced, f, holomorphic)
        count = traced.structure.num_leaves
        width = sum(t.size for t in chosen.types)
        _require_memory(f, "hessian", traced.program.out_types[:count], width * width)
        active = active_inputs(chosen, traced)
        program = None
        if chunk_size is None and width**2 >= _LARGE:
            from ..structure.dense.dense_by_entries import hessian_by_entries

            program = hessian_by_entries(traced.program, active, count)
        if program is None:
            program = dense.hessian(traced.program, active, count, chunk_size)
        if chunk_size is None:
            outs = run(program, [*chosen.leaves, *traced.captured])
        else:
            with working(f"hessian of {name_of(f)}, {width:,} x {width:,}, in chunks of {chunk_size:,}"):
                outs = run(program, [*chosen.leaves, *traced.captured])
        aux, blocks = cut(outs, len(traced.program.outputs) - count)
        size = len(chosen.types) ** 2
        matrices = [unflatten_square(chosen.structure, chosen.types, blocks[j * size :]) for j in range(count)]
        found = tree.unflatten(traced.structure, matrices)
        return (found, rebuild_aux(aux)) if has_aux else found

    return named(takes_foreign_arrays(hessian_of_f), f, "hessian")


def _check_second(chosen: Arguments, traced: Traced, f: Function, holomorphic: bool) -> None:
    """Raise unless the second derivatives of a traced function are defined.

    Raises:
        TypeError: a result is no floating-point number; or numbers are complex and the function is not holomorphic, or
            the other way round.
    """
    results = traced.program.out_types[: traced.structure.num_leaves]
    for index, type in enumerate(results):
        where = f" as result {index}" if len(results) > 1 else ""
        if not is_inexact(type.dtype):
            raise TypeError(
                f"hessian needs floating-point results, but {name_of(f)} returned {type}{where}, whose derivative is "
                f"zero everywhere or does not exist; return it with has_aux=True{at_line(user_line())}"
            )
        if is_complex(type.dtype) and not holomorphic:
            raise TypeError(
                f"hessian needs real results, but {name_of(f)} returned {type}{where}; take .real, .imag or abs() of "
                f"it, or give holomorphic=True if it has complex derivatives{at_line(user_line())}"
            )
    if holomorphic:
        require_complex(chosen, traced, f, "hessian")
    elif any(is_complex(type.dtype) for type in chosen.types):
        _refuse_complex(f, forward=True, both=True, what="Hessian")


@overload
def hvp(f: Function, primals: tuple[First], tangents: Sequence[Any]) -> First: ...
@overload
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any: ...
@takes_foreign_arrays
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Compute the product of the Hessian of a scalar function with a vector, at the cost of a few gradients.

    For many products at one point, `gradient, product = linearize(grad(f), *primals)` evaluates the function once:
    `product(v)` is the product with `v`, and `vmap(product)` takes a batch of vectors.

    Args:
        f: the function, whose result is a real scalar.
        primals: tuple of its arguments.
        tangents: the vector: a tuple of the same structure.

    Returns:
        A tuple like the primals; for a single primal, the product itself.

    Raises:
        TypeError: as `grad` and `jvp`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
        array([6., 0.])
        >>> gradient, product = ft.linearize(ft.grad(lambda x: np.sum(x**3)), np.array([1.0, 2.0]))
        >>> ft.vmap(product)(np.eye(2))
        array([[ 6.,  0.],
               [ 0., 12.]])
    """
    check_function(f, "hvp")
    primals, tangents = as_tuple(primals, "hvp", "primals"), as_tuple(tangents, "hvp", "tangents")
    return jvp(grad(f, _every(primals)), primals, tangents)[1]


@overload
def vhp(f: Function, primals: tuple[First], cotangents: Sequence[Any]) -> First: ...
@overload
def vhp(f: Function, primals: Sequence[Any], cotangents: Sequence[Any]) -> Any: ...
@takes_foreign_arrays
def vhp(f: Function, primals: Sequence[Any], cotangents: Sequence[Any]) -> Any:
    """The product of a vector with the Hessian of a scalar function, by reverse mode alone.

    It equals `hvp`, which is usually faster, where the Hessian is symmetric; a derivative rule of the user may make it
    another matrix.  For many products at one point, `gradient, product = vjp(grad(f), *primals)` evaluates the function
    once.

    Args:
        f: the function, whose result is a real scalar.
        primals: tuple of its arguments.
        cotangents: the vector: a tuple of the same structure.

    Returns:
        A tuple like the primals; for a single primal, the product itself.

    Raises:
        TypeError: as `grad` and `vjp`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.vhp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
        array([6., 0.])
    """
    check_function(f, "vhp")
    primals, cotangents = as_tuple(primals, "vhp", "primals"), as_tuple(cotangents, "vhp", "cotangents")
    _, pull = vjp(grad(f, _every(primals)), *primals)
    found = pull(cotangents[0] if len(primals) == 1 and len(cotangents) == 1 else cotangents)
    return found[0] if len(primals) == 1 else found


def _every(primals: Sequence[Any]) -> Argnums:
    """All positions; the only one as a number."""
    return 0 if len(primals) == 1 else tuple(range(len(primals)))
