"""JAX code: functions written for JAX as parts of programs, such as the update of an optimizer.

XLA compiles them with the rest of a program.  They have no derivative: ftrans does not let JAX differentiate, and
cannot trace JAX code itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...base.interrupts import uninterrupted
from ...core.on_numpy import Memory
from ...core.primitive import MultipleResults, Tangent
from ...core.trace import Tracer
from ...core.types import ArrayType, is_inexact
from ...xla import about_to_run, to_numpy
from .black_box import no_derivative


class JaxCode:
    """A pure function of JAX arrays, which returns a list of them.

    Args:
        name: its name in messages.
        function: the function.
    """

    def __init__(self, name: str, function: Callable[..., Sequence[Any]]) -> None:
        self.name = name
        self.function = function
        self._types: dict[tuple[ArrayType, ...], list[ArrayType]] = {}
        self._compiled: Any = None

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @uninterrupted
    def types(self, given: Sequence[ArrayType]) -> list[ArrayType]:
        """Types of the results, from those of the arguments."""
        import jax

        found = self._types.get(tuple(given))
        if found is None:
            with default_types(given):
                shapes = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in given]
                found = [ArrayType(x.shape, np.dtype(x.dtype)) for x in jax.eval_shape(self.function, *shapes)]
            self._types[tuple(given)] = found
        return found

    @uninterrupted
    def __call__(self, *arrays: Any) -> list[Any]:
        """The results, as JAX arrays or tracers."""
        import jax

        about_to_run()
        if self._compiled is None:
            self._compiled = jax.jit(self.function)
        with default_types(arrays):
            return list(self._compiled(*arrays))


def default_types(xs: Sequence[Any]) -> AbstractContextManager[Any]:
    """A context in which JAX uses its default 32-bit types, unless there are 64-bit numbers among `xs`."""
    import jax

    return jax.enable_x64(_has_64_bits(xs))  # type: ignore[no-any-return, unused-ignore]


def ignores(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> bool:
    """Whether a function of JAX arrays ignores one of its keyword arguments.

    It does if it can be traced with an object in place of the argument that raises whenever it is used.
    """
    import jax

    given = {**kwargs, name: _Untouchable()}
    try:
        jax.eval_shape(lambda *args: function(*args, **given), *args)
    except Exception:
        return False
    return True


class _Untouchable:
    """Stands for an ignored argument: raises whenever it is used."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("the argument is used")


def _has_64_bits(xs: Sequence[Any]) -> bool:
    return any(
        (np.dtype(x.dtype).itemsize >= 8 and np.dtype(x.dtype).kind != "c") or x.dtype == np.complex128 for x in xs
    )


class CallJax(MultipleResults):
    """The results of `code` for the operands."""

    name = "call_jax"
    memory = Memory.NEW

    def type_rule(self, *types: ArrayType, code: JaxCode) -> list[ArrayType]:
        return code.types(types)

    def numpy(self, *arrays: Any, code: JaxCode) -> list[Any]:
        return [to_numpy(x) for x in code(*arrays)]

    def xla(self, *arrays: Any, code: JaxCode) -> list[Any]:
        return code(*arrays)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, code: JaxCode) -> Any:
        results = self(*primals, code=code)
        if any(is_inexact(x.dtype) for x in results):
            raise no_derivative(code.name, "is JAX code, which ftrans does not trace")
        return results, [None] * len(results)

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, code: JaxCode) -> Any:
        import jax

        axes = tuple(0 if b else None for b in batched)
        lanes = JaxCode(code.name, lambda *arrays: jax.vmap(code.function, in_axes=axes, axis_size=size)(*arrays))
        results = self(*operands, code=lanes)
        return results, [True] * len(results)


call_jax = CallJax()
