"""jit: a function -> programs compiled by XLA, one for each signature and each path through Python control flow."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

import numpy as np

from ..base import tree
from ..base.foreign_arrays import ForeignArrays
from ..base.pickles import makes_picklable
from ..base.source import at_line, user_line
from ..base.storable import INPUT_NAMES
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..base.type_variables import Covariant, Params, Result, Transformed
from ..core.program import Program
from ..core.types import type_of
from ..transforms.simplify import simplify
from .call import as_argnums, check_flag, check_function, name_of, named, trace_flat, type_name
from .foreign_arrays import are_foreign
from .jitted import Jitted
from .paths import bind
from .rolling import rolling
from .sharding import Shardings

_NUMBERS = (float, int, bool, complex)


class Compiled(Transformed[Params, Covariant], Protocol[Params, Covariant]):
    """A compiled function, for type checkers: a function of the same arguments, with a method `lower`."""

    def lower(self, *args: Params.args, **kwargs: Params.kwargs) -> Any:
        """JAX's `Lowered` object for these arguments."""


@overload
def jit(
    f: Callable[Params, Result],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    roll: bool = True,
    tune: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Compiled[Params, Result]: ...
@overload
def jit(
    f: None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    roll: bool = True,
    tune: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Callable[[Callable[Params, Result]], Compiled[Params, Result]]: ...


@makes_picklable
def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    roll: bool = True,
    tune: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Any:
    """Compile a function with XLA.

    The function is traced once for each combination of shapes, dtypes and static arguments, and once more for each path
    that Python control flow on values takes.  Arrays that it closes over become constants.  A Python loop with many
    equal steps is compiled as one loop.

    Args:
        f: the function.  Without it, a decorator is returned.
        static_argnums: positions of arguments that are not arrays (flags, sizes, functions); they must be hashable.  1,
            1.0 and True count as different values, and so do 0.0 and -0.0, also within tuples, frozen sets and
            dataclasses.  Objects of other classes are compared by `==`, functions by identity.
        static_argnames: names of such arguments.
        donate_argnums: positions of JAX array arguments whose memory can be reused for the results.
        roll: whether to find Python loops in the program and compile them as loops; False compiles every step.
        tune: whether to compile each program in up to five forms on its first call, and keep the form that is fastest
            for the arguments of this call.  The forms differ in which values are kept and which are computed again
            where they are used.  Programs that call Python code are compiled in one form.
        in_shardings: how the arguments are sharded over the devices of a mesh: a `ft.P`, whose mesh is that of
            `ft.use_mesh`, or a sharding of JAX, or a container of these like the arguments, in which an entry can apply
            to everything below it.  NumPy arrays are put there; JAX arrays must be there already.  None: as the
            arguments are.
        out_shardings: the same for the results.  None leaves them to XLA.

    Returns:
        A function of the same arguments.  Its results are NumPy arrays, or JAX arrays if an argument is one or
        shardings are given.  Its method `lower(*args)` returns JAX's `Lowered` object.

    Raises:
        TypeError: an argument of the function is neither an array nor static; `roll` or `tune` is not a bool.
        ValueError: a sharding does not fit its array; arrays are on different devices.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.jit(lambda x: x * 2 if x.sum() > 0 else x)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    if f is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            roll=roll,
            tune=tune,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
        )
    check_function(f, "jit")
    check_flag(roll, "jit", "roll")
    check_flag(tune, "jit", "tune")
    static_argnums = as_argnums(static_argnums, "jit", "static_argnums")
    donate_argnums = as_argnums(donate_argnums, "jit", "donate_argnums")
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else donate_argnums
    shardings = None if in_shardings is None and out_shardings is None else Shardings(f, in_shardings, out_shardings)
    jitted = Jitted(f, static_argnums, static_argnames, donated, bool(roll), bool(tune), shardings)
    call = jitted.call

    # What `takes_foreign_arrays` does, without a call of its own.
    @functools.wraps(f)
    def jit_of_f(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(args, kwargs)
        except ForeignArrays:
            if not are_foreign(args, kwargs):
                raise
        return ForeignArrays.take(jit_of_f, args, kwargs, False)

    jit_of_f.lower = jitted.lower  # type: ignore[attr-defined]
    return named(jit_of_f, f, "jit")


def trace(f: Callable[Params, Any], rolled: bool = False) -> Callable[Params, Program]:
    """Return a function that traces `f` and returns its simplified program.

    Args:
        f: the function.
        rolled: whether Python loops are shown as loops, as `jit` compiles them, instead of every step.

    Returns:
        A function of the same arguments that returns a `Program`.  You can print it, check it with `.check()`, and call
        it on arrays.  Python control flow takes the path of these arguments.

    Raises:
        TypeError: an argument of the function is not an array; `rolled` is not a bool.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> print(ft.trace(lambda x: np.sin(x) + 1)(0.5))  # doctest: +ELLIPSIS
        lambda(a: f64[]) -> f64[]:
          b: f64[] = sin(a) ...
          c: f64[] = add(b, 1.0) ...
          return c
    """
    check_function(f, "trace")
    check_flag(rolled, "trace", "rolled")

    @short_tracebacks
    @functools.wraps(f)
    def trace_of_f(*args: Params.args, **kwargs: Params.kwargs) -> Program:
        leaves, structure = tree.flatten((args, kwargs))

        def call(values: list[Any]) -> Any:
            new_args, new_kwargs = tree.unflatten(structure, values)
            return f(*new_args, **new_kwargs)

        types = []
        for index, x in enumerate(leaves):
            try:
                types.append(type_of(x))
            except TypeError:
                path = tree.paths((args, kwargs))[index]
                raise TypeError(
                    f"trace takes arrays, but argument {path[3:]} of {name_of(f)} is {type_name(x)}; close over it"
                    + at_line(user_line())
                ) from None
        weak = [is_plain(x, _NUMBERS) and not is_plain(x, np.generic) for x in leaves]
        with rolling(bool(rolled)):
            traced, _ = trace_flat(f, types, call, leaves, weak, shared=False)
        program = simplify(bind(traced.program, len(leaves), traced.captured, math.inf)[0])
        program.derived[INPUT_NAMES] = _input_names(f, args, kwargs)
        return program

    return trace_of_f


def _input_names(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, ...]:
    """A name for each array among the arguments: that of its parameter, and where it is in a container."""
    try:
        bound = inspect.signature(f).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {}
    by_position = [name for name in bound if bound[name] is not kwargs.get(name, bound)]
    first = [*by_position, *(f"x{i}" for i in range(len(by_position), len(args)))]
    names = [*(f"{name}{path}" for name, x in zip(first, args, strict=False) for path in tree.paths(x))]
    names += [f"{name}{path}" for name in sorted(kwargs) for path in tree.paths(kwargs[name])]
    return tuple(re.sub(r"\W+", "_", name).strip("_") for name in names)
