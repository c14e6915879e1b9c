"""The family of special functions: what they share as primitives, from the partial derivatives that each one states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.on_numpy import Memory
from ...core.primitive import MissingRule, MultipleResults, Primitive, SingleResult, Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex, is_inexact
from ..broadcast import with_batch_axis
from ..elementwise.family import Partial, combined
from ..host import on_host


class SpecialFunction(Primitive):
    """A function of the elements of operands of one shape, with the meaning that it has in `scipy.special`.

    SciPy is imported when one is first computed.  Where XLA has no operation for it, a compiled program calls SciPy on
    the host.  Parameters of an equation go to all of these functions.

    Args:
        name: the name of a ufunc of `scipy.special`, which is also its name in print.
        partials: takes the result and the operands (as tracers), returns for each operand a function that multiplies a
            tangent by the partial derivative, or None where the derivative is zero everywhere.  Of a function with
            several results it takes the list of them, and returns one such list for each.
        numpy: a function on NumPy arrays in place of the ufunc.
        xla: the name of a function of `jax.scipy.special`, or a function that is called with JAX's arrays; by default
            the host computes.
        xla_takes_complex: whether `xla` does for complex operands too, for which the host computes otherwise.
        results: number of results.
        orders: how many operands, the first ones, are orders or degrees, whose dtypes are their own.  The others have
            one floating-point dtype.
        result: the dtype of the results, from the dtype of the operands; the same by default.
    """

    memory = Memory.NEW

    def __init__(
        self,
        name: str,
        partials: Callable[..., Sequence[Any]],
        *,
        numpy: Callable[..., Any] | None = None,
        xla: str | Callable[..., Any] | None = None,
        xla_takes_complex: bool = False,
        results: int = 1,
        orders: int = 0,
        result: Callable[[np.dtype[Any]], Any] | None = None,
    ) -> None:
        self.name = name
        self._partials = partials
        self._numpy = numpy
        self._xla: Any = xla
        self._xla_takes_complex = xla_takes_complex
        assert (results > 1) is self.multiple_results
        self._results = results
        self._orders = orders
        self._result = result

    @property
    def runs_on_host(self) -> bool:
        """Whether a compiled program calls SciPy for it."""
        return self._xla is None

    def type_rule(self, *types: ArrayType, **params: Any) -> Any:
        free = types[self._orders :]
        if any(t.shape != types[0].shape for t in types) or any(t.dtype != free[0].dtype for t in free):
            raise TypeError(f"operands of {self.name} differ in type: {', '.join(map(str, types))}")
        if not is_inexact(free[0].dtype):
            raise TypeError(f"{self.name} is not defined for {free[0]}")
        type = free[0] if self._result is None else free[0].with_dtype(self._result(free[0].dtype))
        return [type] * self._results if self.multiple_results else type

    def numpy(self, *arrays: Any, **params: Any) -> Any:
        types = [ArrayType(x.shape, x.dtype) for x in arrays]
        dtypes = [t.dtype for t in self.output_types(types, params)]
        results = _computed(*arrays, function=self._function(), dtypes=dtypes, **params)
        return results if self.multiple_results else results[0]

    def _function(self) -> Callable[..., Any]:
        if self._numpy is None:
            import scipy.special

            self._numpy = getattr(scipy.special, self.name)
        return self._numpy

    def stand_alone(self, types: list[ArrayType], params: Params) -> tuple[Callable[..., Any], Params]:
        """A function that means the same where there is no ftrans, and its parameters; see `run.stand_alone`."""
        dtypes = tuple(t.dtype for t in self.output_types(types, params))
        function = _computed if self.multiple_results else _computed_one
        return function, {"function": self._function(), "dtypes": dtypes, **params}

    def xla(self, *arrays: Any, **params: Any) -> Any:
        if self._xla is None or (is_complex(np.dtype(arrays[-1].dtype)) and not self._xla_takes_complex):
            types = self.output_types([ArrayType(x.shape, np.dtype(x.dtype)) for x in arrays], params)

            def compute(*xs: Any) -> Any:
                found = self.numpy(*xs, **params)
                return found if self.multiple_results else [found]

            found = on_host(compute, types, *arrays)
            return found if self.multiple_results else found[0]
        if isinstance(self._xla, str):
            import jax.scipy.special

            self._xla = getattr(jax.scipy.special, self._xla)
        return self._xla(*arrays, **params)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        outs = self.bind_all(primals, params)
        rows = self._partials(outs if self.multiple_results else outs[0], *primals, **params)
        # Most have poles, where their derivatives are infinite.
        found = [combined(row, tangents, are_singular=True) for row in (rows if self.multiple_results else [rows])]
        return (outs, found) if self.multiple_results else (outs[0], found[0])

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        full = [with_batch_axis(size, x, b) for x, b in zip(operands, batched, strict=True)]
        outs = self.bind_all(full, params)
        return (outs, [True] * self._results) if self.multiple_results else (outs[0], True)


def _computed(*arrays: Any, function: Callable[..., Any], dtypes: Sequence[Any], **params: Any) -> list[Any]:
    """The results of a function of SciPy, in these dtypes."""
    # SciPy knows no numbers of 16 bits.
    wide = (x.astype(np.float32) if is_inexact(x.dtype) and x.dtype.itemsize == 2 else x for x in arrays)
    found = function(*wide, **params)
    results = found if isinstance(found, list | tuple) else [found]
    return [y if y.dtype == t else y.astype(t)[()] for y, t in zip(results, dtypes, strict=True)]


def _computed_one(*arrays: Any, function: Callable[..., Any], dtypes: Sequence[Any], **params: Any) -> Any:
    """The result of a function of SciPy, in its dtype."""
    (result,) = _computed(*arrays, function=function, dtypes=dtypes, **params)
    return result


class Special(SpecialFunction, SingleResult):
    """A special function with one result."""


class Specials(SpecialFunction, MultipleResults):
    """A special function with several results."""


def refused(name: str, argument: str, why: str = "no formula or convergent series for it is known") -> Partial:
    """The partial derivative with respect to an argument that has none here: an error that says why."""

    def partial(t: Tracer) -> Tangent:
        raise MissingRule(
            f"scipy.special.{name} has no derivative with respect to {argument} in ftrans: {why}. Hold it constant,"
            f" with ftrans.stop_gradient({argument}) if it depends on what is differentiated{at_line(user_line())}"
        )

    return partial
