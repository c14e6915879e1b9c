"""jit: a function -> programs compiled by XLA, one for each signature and each path through Python control flow."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..control.call import call as call_primitive
from ..core import tree
from ..core.eager import Eager
from ..core.program import Program
from ..core.trace import Tracer, current_builder
from ..core.types import type_of
from ..transforms.simplify import simplify
from ..xla import Compiled, is_jax_tracer, to_numpy
from . import anomaly
from .call import as_argnums, check_function, name_of, named, trace_flat, type_name
from .paths import Path, Paths, bind, native, new_path, run_paths, without_collector
from .progress import close_bars_of
from .signatures import Signatures

_NUMBERS = (float, int, bool, complex)


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Compile a function with XLA.

    The function is traced once for each combination of shapes, dtypes and static arguments, and once more for each
    path that Python control flow on values takes.  Arrays that it closes over become constants.

    Args:
        f: the function.  Without it, a decorator is returned.
        static_argnums: positions of arguments that are not arrays (flags, sizes, functions); they must be hashable.  1,
            1.0 and True count as different values, and so do 0.0 and -0.0, also within tuples, frozen sets and
            dataclasses.  Objects of other classes are compared by `==`, functions by identity.
        static_argnames: names of such arguments.
        donate_argnums: positions of JAX array arguments whose memory may be reused for the results.

    Returns:
        A function of the same arguments.  Its results are NumPy arrays, or JAX arrays if an argument is one.  Its
        method `lower(*args)` returns JAX's `Lowered` object.

    Raises:
        TypeError: an argument is neither an array nor static.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.jit(lambda x: x * 2 if x.sum() > 0 else x)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    if f is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums
        )
    check_function(f, "jit")
    function = f
    static_argnums = as_argnums(static_argnums, "jit", "static_argnums")
    signatures = Signatures(function, static_argnums, static_argnames)
    donate_argnums = as_argnums(donate_argnums, "jit", "donate_argnums")
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else donate_argnums
    cache: dict[Any, Paths] = {}

    def compile_for(leaves: list[Any], how: Any, args: tuple[Any, ...]) -> Path:
        given = (lambda: signatures.donated(donated, args)) if donated else None
        return new_path(function, leaves, signatures.rebuild(how), given)

    @functools.wraps(function)
    def jit_of_f(*args: Any, **kwargs: Any) -> Any:
        if current_builder() is not None:
            _, leaves, how = signatures.prepare(args, kwargs)
            return _call_inside(function, leaves, signatures.rebuild(how))
        key, leaves, how = signatures.prepare(args, kwargs)
        try:
            paths = cache.get(key)
        except TypeError:
            raise signatures.unhashable(how) from None
        if paths is None:
            paths = cache.setdefault(key, Paths(leaves))
        if paths.swaps_bytes:
            leaves = [native(x) for x in leaves]
        if paths.eager is not None:
            outs, path = apply_to_eager(paths, function, leaves, lambda arrays: compile_for(arrays, how, args))
            return tree.unflatten(path.structure, outs)
        try:
            outs, path = run_paths(paths, function, leaves, lambda: compile_for(leaves, how, args))
            if not path.on_device:
                outs = [to_numpy(x) for x in outs]
            if anomaly.is_anomaly_enabled():
                _check(path, leaves, outs, () if how[1] is not None else (args, kwargs))
        except BaseException:
            for known in paths.paths:
                close_bars_of(known.compiled.program, is_compiled=True)
            raise
        if not path.on_device:
            close_bars_of(path.compiled.program, is_compiled=True)
        return tree.unflatten(path.structure, outs)

    def lower(*args: Any, **kwargs: Any) -> Any:
        """JAX's `Lowered` object for these arguments."""
        _, leaves, how = signatures.prepare(args, kwargs)
        path = compile_for(leaves, how, args)
        return without_collector(path.compiled.lower, *leaves, *path.constants)

    compiled = named(jit_of_f, function, "jit")
    compiled.lower = lower  # type: ignore[attr-defined]
    return compiled


def apply_to_eager(
    paths: Paths, f: Callable[..., Any], leaves: list[Any], trace: Callable[[list[Any]], Path]
) -> tuple[list[Any], Path]:
    """The results of a compiled function on arguments some of which are more than arrays, and the path taken."""
    arrays = [x.concrete() if isinstance(x, Eager) else x for x in leaves]
    path = paths.first(arrays)
    if path is None or path.guards:
        _, path = run_paths(paths, f, arrays, lambda: trace(arrays))
    assert paths.eager is not None
    name = f.__name__ if hasattr(f, "__name__") else "function"
    outs = paths.eager.apply_program(path.compiled.program, [*leaves, *path.constants], _run_compiled, name)
    return outs[: len(outs) - len(path.guards)], path


def _run_compiled(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run a program compiled; results are NumPy arrays."""
    compiled = program.derive("compiled", lambda: Compiled(simplify(program)))
    return [to_numpy(x) for x in compiled(*args)]


def _check(path: Path, leaves: list[Any], outs: list[Any], arguments: tuple[Any, ...]) -> None:
    """Raise AnomalyError if results of a compiled path are not finite."""
    if any(map(is_jax_tracer, outs)):
        return

    def names() -> list[str]:
        paths = [path for part in arguments for path in tree.paths(part)]
        named = [path[1:].replace("]", "", 1).replace("'", "", 2 * path.startswith("['")) for path in paths]
        return [f"argument {name}" for name in named]

    anomaly.check(path.compiled.program, [*leaves, *path.constants], outs, names=names)


def _call_inside(f: Callable[..., Any], leaves: list[Any], call: Callable[[list[Any]], Any]) -> Any:
    """A call of a jitted function while another trace runs: one equation that holds the program."""
    types = [type_of(x) for x in leaves]
    weak = [x.weak if isinstance(x, Tracer) else isinstance(x, _NUMBERS) for x in leaves]
    traced, _ = trace_flat(f, types, call, leaves, weak)
    outs = call_primitive(*leaves, *traced.captured, program=traced.program)
    return tree.unflatten(traced.structure, outs)


def trace(f: Callable[..., Any]) -> Callable[..., Program]:
    """Trace a function to its program, simplified.

    Args:
        f: the function.

    Returns:
        A function of the same arguments that returns a `Program`, which can be printed, checked by `.check()`, and
        called on arrays.  Python control flow takes the path of these arguments.

    Raises:
        TypeError: an argument is not an array.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> print(ft.trace(lambda x: np.sin(x) + 1)(0.5))  # doctest: +ELLIPSIS
        lambda(a: f64[]) -> f64[]:
          b: f64[] = sin(a) ...
          c: f64[] = add(b, 1.0) ...
          return c
    """

    check_function(f, "trace")

    @functools.wraps(f)
    def trace_of_f(*args: Any, **kwargs: Any) -> Program:
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
        weak = [isinstance(x, _NUMBERS) and not isinstance(x, np.generic) for x in leaves]
        traced, _ = trace_flat(f, types, call, leaves, weak, shared=False)
        return simplify(bind(traced.program, len(leaves), traced.captured, math.inf)[0])

    return trace_of_f
