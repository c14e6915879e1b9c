"""from_jax: a function written for JAX as a part of programs, differentiated by JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..api.call import check_function, name_of, record_or_run, type_name
from ..base import tree
from ..base.interrupts import uninterrupted
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..control.rules.jax_code import JaxCode, call_jax, default_types
from ..core.trace import Tracer, TracerLeak, recording_in
from ..core.types import ArrayType, is_inexact, type_of
from ..ops.elementwise import convert
from ..xla import about_to_run, is_jax_tracer

_NUMBERS = (float, int, bool, complex)
_NARROW: dict[str, Any] = {"f": np.float32, "c": np.complex64, "i": np.int32, "b": np.bool_}


def from_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function written for JAX part of ftrans programs.

    ftrans cannot trace JAX code, so JAX differentiates the function, to every order; `jax.custom_jvp`, `jax.custom_vjp`
    and collectives within `jax.shard_map` have the meaning that they have in JAX.  In un-jitted code the function is
    compiled by itself, in `ftrans.jit` together with the rest.  A gradient evaluates it once more, unless it is
    compiled together with the value.

    Args:
        f: a pure function of JAX arrays, and containers of them, that returns the same.

    Returns:
        A function of the same arguments: arrays, numbers and traced values, and containers of them.  Its results are
        NumPy arrays, or traced values.  If an argument has a 64-bit dtype, it is kept, whatever the settings of JAX.

    Raises:
        TypeError: an argument of the function is not an array, or it closes over a traced value.

    Example:
        >>> import jax.numpy as jnp, numpy as np, ftrans as ft
        >>> energy = ft.from_jax(lambda x: jnp.sum(jnp.sin(x) ** 2))
        >>> ft.grad(lambda x: 3 * energy(x))(np.array([0.0, np.pi / 4]))
        array([0., 3.])
    """
    check_function(f, "from_jax")
    calls: dict[Any, _Calls] = {}

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        if any(map(is_jax_tracer, leaves)):
            return f(*args, **kwargs)
        for i, x in enumerate(leaves):
            try:
                type_of(x)
            except TypeError:
                path = tree.paths((args, kwargs))[i]
                raise TypeError(
                    f"a function from JAX takes arrays, but argument {path[3:]} of {name_of(f)} is {type_name(x)}; "
                    f"set it beforehand, as in ft.from_jax(functools.partial(f, flag=True)){at_line(user_line())}"
                ) from None
        calls_of_structure = calls.setdefault(structure, _Calls(f, structure))
        return calls_of_structure.result(leaves)

    return call


class _Calls:
    """Calls of a function with arguments of one structure."""

    def __init__(self, f: Callable[..., Any], structure: Any) -> None:
        self._f = f
        self._structure = structure
        self._code = JaxCode(name_of(f), self._leaves, is_differentiable=True)
        # The structures of results, by the types of the arguments.
        self._results: dict[tuple[ArrayType, ...], Any] = {}

    def _leaves(self, *arrays: Any) -> list[Any]:
        return self._flattened(arrays)[0]

    def _flattened(self, arrays: Sequence[Any]) -> tuple[list[Any], Any]:
        import jax

        args, kwargs = tree.unflatten(self._structure, list(arrays))
        try:
            # It may call functions of ftrans, which are not a part of the trace around it.
            with recording_in(None):
                leaves, structure = jax.tree_util.tree_flatten(self._f(*args, **kwargs))
        except TracerLeak as error:
            raise TypeError(
                f"{name_of(self._f)} closes over a value that ftrans is tracing, and JAX cannot differentiate it with "
                f"respect to that; pass it as an argument{at_line(user_line())}"
            ) from error
        return [jax.numpy.asarray(x) for x in leaves], structure

    def result(self, leaves: Sequence[Any]) -> Any:
        """The result for these arguments."""
        import jax

        operands = _with_dtypes(leaves)
        types = tuple(map(type_of, operands))
        if types not in self._results:
            self._results[types] = self._structure_of_result(types)
        outs = record_or_run(self._code.name, lambda xs: call_jax(*xs, code=self._code), operands)
        return jax.tree_util.tree_unflatten(self._results[types], outs)

    @uninterrupted
    def _structure_of_result(self, types: Sequence[ArrayType]) -> Any:
        import jax

        about_to_run()
        found: list[Any] = []
        with default_types(types):
            shapes = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in types]
            jax.eval_shape(lambda *xs: found.append(self._flattened(xs)[1]), *shapes)
        return found[0]


def _with_dtypes(leaves: Sequence[Any]) -> list[Any]:
    """Arguments among which numbers of Python have 32 bits where no array has 64, as in JAX."""
    weak = [x.weak if type(x) is Tracer else is_plain(x, _NUMBERS) and not is_plain(x, np.generic) for x in leaves]
    widths = [type_of(x).dtype for x, w in zip(leaves, weak, strict=True) if not w]
    if not widths or not any(weak) or any(np.finfo(t).bits > 32 if is_inexact(t) else t.itemsize > 4 for t in widths):
        return list(leaves)
    return [_narrow(x) if w else x for x, w in zip(leaves, weak, strict=True)]


def _narrow(x: Any) -> Any:
    dtype = _NARROW[type_of(x).dtype.kind]
    return convert(x, dtype=np.dtype(dtype)) if type(x) is Tracer else dtype(x)
