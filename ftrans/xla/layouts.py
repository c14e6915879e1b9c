"""The order of axes in which values of a program are held while it is lowered to XLA: channels second, or last.

Programs have channels second. XLA on a CPU convolves with channels last, and would move the elements of the operands
and of the result of each convolution. So where a program has convolutions, their results stay in that order, and so
does what is computed of them, up to operations that know only the other one (`Primitive.xla_channels_last`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.channels import channels_last, channels_second
from ..base.surroundings import exported_for
from ..core.program import Eqn, Program
from .kinds import is_jax_tracer


def moves_channels(program: Program, args: Sequence[Any]) -> bool:
    """Whether values are to be held with channels last: JAX compiles for a CPU, and `program` has convolutions."""
    return (
        program.derive("convolves", lambda: any(eqn.primitive.convolves for eqn in program.eqns))
        and any(map(is_jax_tracer, args))
        and _is_for_cpu()
    )


def _is_for_cpu() -> bool:
    import jax

    platforms = exported_for()
    return jax.default_backend() == "cpu" if platforms is None else platforms == ("cpu",)


class Moved:
    """An array with its channels last."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.ndim = array.ndim
        self._plain: Any = None

    @property
    def plain(self) -> Any:
        """The array with the axes of the program."""
        if self._plain is None:
            from jax import lax

            self._plain = lax.transpose(self.array, channels_second(range(self.ndim)))
        return self._plain


def plain(x: Any) -> Any:
    """A value with the axes of the program."""
    return x.plain if type(x) is Moved else x


class Layouts:
    """Lowers the equations of one program, and remembers which values it has moved."""

    def __init__(self) -> None:
        # By the address of a plain value: that value, and what gives it with channels last.
        self._moved: dict[int, tuple[Any, Callable[[], Any]]] = {}

    def xla(self, eqn: Eqn, values: Sequence[Any]) -> Any:
        """The result of an equation (a list if there are several), from values that are plain or `Moved`."""
        primitive = eqn.primitive
        if not primitive.multiple_results:
            result = self._channels_last(eqn, values)
            if result is not None:
                return result
        operands = [plain(x) for x in values]
        result = primitive.xla(*operands, **eqn.params)
        if not primitive.multiple_results and result.ndim > max([2, *map(np.ndim, operands)]):
            # A value that is repeated is not moved, but repeated along other axes.
            self._moved[id(result)] = result, lambda: primitive.xla_channels_last(*operands, **eqn.params)
        return result

    def _channels_last(self, eqn: Eqn, values: Sequence[Any]) -> Any:
        most = max(t.ndim for t in (*[a.type for a in eqn.operands], eqn.outputs[0].type))
        if most < 3 or not (eqn.primitive.convolves or any(type(x) is Moved and x.ndim == most for x in values)):
            return None
        operands = [self._last(x) if np.ndim(x) == most else plain(x) for x in values]
        result = eqn.primitive.xla_channels_last(*operands, **eqn.params)
        return Moved(result) if result is not None and result.ndim == most else result

    def _last(self, x: Any) -> Any:
        """A value with its channels last."""
        if type(x) is Moved:
            return x.array
        from jax import lax

        _, make = self._moved.get(id(x), (x, None))
        array = None if make is None else make()
        if array is None:
            array = lax.transpose(x, channels_last(range(x.ndim)))
        self._moved[id(x)] = x, lambda: array
        return array


def fenced(x: Any) -> Any:
    """A value behind a barrier, which ends fusion."""
    from jax import lax

    return Moved(lax.optimization_barrier(x.array)) if type(x) is Moved else lax.optimization_barrier(x)
