"""JAX code: functions written for JAX as parts of programs, such as the update of an optimizer.

XLA compiles them with the rest of a program.  ftrans cannot trace them.  Where the user lets JAX differentiate
a function, by `ft.from_jax`, its tangents and cotangents are JAX code again, so all orders close.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...base.interrupts import uninterrupted
from ...core.on_numpy import Memory
from ...core.primitive import MultipleResults, Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType, is_inexact
from ...ops.broadcast import with_batch_axis
from ...xla import about_to_run, is_jax_tracer, outside_of_traces, to_numpy
from ..subprograms import Flags, chosen, cut, spread
from .black_box import no_derivative


class JaxCode:
    """A pure function of JAX arrays, which returns a list of them.

    Args:
        name: its name in messages.
        function: the function.
        is_differentiable: whether JAX differentiates it.

    Attributes:
        known: how many of the leading arguments it need not be linear in; None for all of them.
    """

    known: int | None = None

    def __init__(self, name: str, function: Callable[..., Sequence[Any]], is_differentiable: bool = False) -> None:
        self.name = name
        self.function = function
        self.is_differentiable = is_differentiable
        self._types: dict[tuple[ArrayType, ...], list[ArrayType]] = {}
        self._compiled: Any = None
        self._derived: dict[Any, Any] = {}

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

    def derived(self, kind: type[_Derivative], active: Flags, outs: Flags) -> JaxCode:
        """The derivative of this kind, for some of the arguments and some of the floating-point results."""
        return self._derived.setdefault((kind, active, outs), kind(self, active, outs))

    def transposed(self, linear: Flags, arrived: Flags) -> JaxCode:
        """The transpose of a linear function, for some of the arguments that it is linear in, and some results."""
        raise no_derivative(self.name, "is JAX code that is not linear in these arguments")

    def mapped(self, batched: Flags, size: int) -> JaxCode:
        """The function over a leading axis of some arguments, which all results have."""
        key = ("mapped", batched, size)
        return self._derived.setdefault(key, JaxCode(self.name, self._lanes(batched, size), self.is_differentiable))

    def _lanes(self, batched: Flags, size: int) -> Callable[..., Sequence[Any]]:
        import jax

        axes = tuple(0 if b else None for b in batched)
        return lambda *arrays: jax.vmap(self.function, in_axes=axes, axis_size=size)(*arrays)


class _Derivative(JaxCode):
    """What is linear in the derivative of a function: a function of its arguments, then of tangents or cotangents.

    Args:
        code: the function.
        active: which of its arguments are not constant.
        outs: which of its floating-point results are wanted.
    """

    def __init__(self, code: JaxCode, active: Flags, outs: Flags) -> None:
        super().__init__(f"the derivative of {code.name}", self._apply, is_differentiable=True)
        self._code = code
        self._active = active
        self._outs = outs
        self.known = len(active)

    def _apply(self, *arrays: Any) -> list[Any]:
        primals, others = arrays[: self.known], list(arrays[self.known :])

        def f(*xs: Any) -> list[Any]:
            given = iter(xs)
            results = self._code.function(
                *[next(given) if a else x for x, a in zip(primals, self._active, strict=True)]
            )
            return chosen([y for y in results if is_inexact(np.dtype(y.dtype))], self._outs)

        return self._derive(f, chosen(primals, self._active), others)

    def _derive(self, f: Callable[..., list[Any]], xs: list[Any], others: list[Any]) -> list[Any]:
        raise NotImplementedError

    def mapped(self, batched: Flags, size: int) -> JaxCode:
        return self._code.mapped((True,) * len(self._active), size).derived(type(self), self._active, self._outs)


class Tangents(_Derivative):
    """Tangents of the results.

    JAX is asked for them where forward mode runs, and not on the way to a gradient: a function may have none.
    """

    def _derive(self, f: Callable[..., list[Any]], xs: list[Any], others: list[Any]) -> list[Any]:
        import jax

        return list(jax.jvp(f, xs, others)[1])

    def types(self, given: Sequence[ArrayType]) -> list[ArrayType]:
        return chosen([t for t in self._code.types(given[: self.known]) if is_inexact(t.dtype)], self._outs)

    def transposed(self, linear: Flags, arrived: Flags) -> JaxCode:
        return self._code.derived(Cotangents, _narrowed(self._active, linear), _narrowed(self._outs, arrived))


class Cotangents(_Derivative):
    """Cotangents of the arguments."""

    def _derive(self, f: Callable[..., list[Any]], xs: list[Any], others: list[Any]) -> list[Any]:
        import jax

        return list(jax.vjp(f, *xs)[1](others))

    def types(self, given: Sequence[ArrayType]) -> list[ArrayType]:
        return chosen(given[: self.known], self._active)

    def transposed(self, linear: Flags, arrived: Flags) -> JaxCode:
        return self._code.derived(Tangents, _narrowed(self._active, arrived), _narrowed(self._outs, linear))


def _narrowed(flags: Flags, kept: Flags) -> Flags:
    """The flags that are set, but those that `kept`, which has one for each of them, leaves out."""
    remaining = iter(kept)
    return tuple(flag and next(remaining) for flag in flags)


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
        with outside_of_traces():
            results = code(*arrays)
        if any(map(is_jax_tracer, results)):
            raise TypeError(f"{code.name} closes over a value that JAX is tracing; pass it as an argument")
        return [*map(to_numpy, results)]

    def xla(self, *arrays: Any, code: JaxCode) -> list[Any]:
        return code(*arrays)

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        known = params["code"].known
        return () if known is None else range(known, count)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, code: JaxCode) -> Any:
        results = self(*primals, code=code)
        has_tangent = tuple(is_inexact(x.dtype) for x in results)
        if not any(has_tangent):
            return results, [None] * len(results)
        if not code.is_differentiable:
            raise no_derivative(code.name, "is JAX code, which ftrans does not trace")
        active = tuple(t is not None for t in tangents)
        along = code.derived(Tangents, active, (True,) * has_tangent.count(True))
        found = self(*primals, *[t for t in tangents if t is not None], code=along)
        return results, spread(found, has_tangent)

    def transpose(self, cotangents: Any, operands: Sequence[Any], *, code: JaxCode) -> list[Tangent]:
        known, linear = cut(operands, len(operands) if code.known is None else code.known)
        if any(isinstance(x, ArrayType) for x in known):
            self._missing("transpose")
        wanted = tuple(isinstance(x, ArrayType) for x in linear)
        turned = code.transposed(wanted, tuple(ct is not None for ct in cotangents))
        found = self(*known, *[ct for ct in cotangents if ct is not None], code=turned)
        return [*(None for _ in known), *spread(found, wanted)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, code: JaxCode) -> Any:
        if code.known is not None:
            operands = [with_batch_axis(size, x, b) for x, b in zip(operands, batched, strict=True)]
        results = self(*operands, code=code.mapped(tuple(batched), size))
        return results, [True] * len(results)


call_jax = CallJax()
