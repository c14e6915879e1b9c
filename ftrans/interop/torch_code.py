"""Code for torch as a part of programs: functions of tensors, which run on the host and are differentiated by torch.

An equation `call_torch` holds a function of tensors.  Its derivatives, their transposes and their batches are such
functions, made by `torch.func`, so all orders close.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.foreign_arrays import numpy_of
from ..control.rules.host_call import UserCode
from ..core.primitive import Tangent
from ..core.program import Params
from ..core.trace import Tracer, recording_in
from ..core.types import ArrayType, is_inexact, type_of
from ..ops.host import on_host
from ..ops.literals import full_like
from .tensors import tensor_of

Flags = tuple[bool, ...]


class TorchCode:
    """A pure function of tensors of known types, and those that torch derives from it.

    Args:
        name: its name in messages.
        function: takes tensors, and returns a sequence of them.
        in_types: types of the arguments.
        out_types: types of the results.
        along: a function and which of its arguments are active, if this is its derivative along these: a function of
            its arguments and tangents of the active ones.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Sequence[Any]],
        in_types: Sequence[ArrayType],
        out_types: Sequence[ArrayType],
        along: tuple[TorchCode, Flags] | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.in_types = tuple(in_types)
        self.out_types = tuple(out_types)
        self.along = along
        self._derived: dict[Any, TorchCode] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __call__(self, *arrays: Any) -> list[Any]:
        """The results for NumPy arrays, which the function may write to.

        Raises:
            TypeError: the results have other types than before.
        """
        import torch

        with recording_in(None), torch.no_grad():
            outs = self.function(*map(tensor_of, arrays))
        results = [np.array(numpy_of(y))[()] for y in outs]
        found = tuple([type_of(y) for y in results])
        if found != self.out_types:
            listed = [", ".join(map(str, types)) for types in (self.out_types, found)]
            raise TypeError(
                f"{self.name} is a part of a program, so for arguments of the same types it must always return tensors "
                f"of the same types; before it returned {listed[0]}, now {listed[1]}"
            )
        return results

    def pushforward(self, active: Flags) -> TorchCode:
        """From the arguments and tangents of active ones to tangents of the floating-point results."""

        def make() -> TorchCode:
            def function(*values: Any) -> Any:
                import torch

                primals, tangents = values[: len(active)], values[len(active) :]
                chosen = tuple([x for x, a in zip(primals, active, strict=True) if a])
                return torch.func.jvp(self._floating(primals, active), chosen, tangents)[1]

            tangents = [t for t, a in zip(self.in_types, active, strict=True) if a]
            types = [t for t in self.out_types if is_inexact(t.dtype)]
            return TorchCode(f"jvp({self.name})", function, [*self.in_types, *tangents], types, (self, active))

        return self._derive(("pushforward", active), make)

    def pullback(self, active: Flags) -> TorchCode:
        """From the arguments and cotangents of the floating-point results to cotangents of active arguments."""

        def make() -> TorchCode:
            def function(*values: Any) -> Any:
                import torch

                primals, cotangents = values[: len(active)], values[len(active) :]
                chosen = tuple([x for x, a in zip(primals, active, strict=True) if a])
                pull = torch.func.vjp(self._floating(primals, active), *chosen)[1]
                # torch takes the adjoint where ftrans transposes.
                return [x.conj() for x in pull(tuple([ct.conj() for ct in cotangents]))]

            types = [t for t in self.out_types if is_inexact(t.dtype)]
            results = [t for t, a in zip(self.in_types, active, strict=True) if a]
            return TorchCode(f"vjp({self.name})", function, [*self.in_types, *types], results)

        return self._derive(("pullback", active), make)

    def batched(self, size: int, flags: Flags) -> TorchCode:
        """The function of a batch: flagged arguments, and all results, have a leading axis of that size."""

        def make() -> TorchCode:
            def function(*values: Any) -> Any:
                import torch

                axes = tuple([0 if b else None for b in flags])
                return torch.func.vmap(lambda *lane: tuple(self.function(*lane)), axes)(*values)

            pairs = zip(self.in_types, flags, strict=True)
            in_types = [t.with_shape((size, *t.shape)) if b else t for t, b in pairs]
            out_types = [t.with_shape((size, *t.shape)) for t in self.out_types]
            return TorchCode(f"vmap({self.name})", function, in_types, out_types)

        return self._derive(("batched", size, flags), make)

    def _floating(self, primals: Sequence[Any], active: Flags) -> Callable[..., tuple[Any, ...]]:
        """The floating-point results as a function of the active arguments."""

        def function(*chosen: Any) -> tuple[Any, ...]:
            given = iter(chosen)
            # Copies: the function may write to its arguments, and torch refuses that for those that it differentiates.
            outs = self.function(*[next(given).clone() if a else x for x, a in zip(primals, active, strict=True)])
            return tuple([y for y, t in zip(outs, self.out_types, strict=True) if is_inexact(t.dtype)])

        return function

    def _derive(self, key: Any, make: Callable[[], TorchCode]) -> TorchCode:
        # Equal calls hold the same function, so that programs are equal.
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]


class CallTorch(UserCode):
    """The results of `code` for the operands, computed on the host."""

    name = "call_torch"

    def type_rule(self, *types: ArrayType, code: TorchCode) -> list[ArrayType]:
        if types != code.in_types:
            raise TypeError(f"{code.name} takes {code.in_types}, not {types}")
        return list(code.out_types)

    def numpy(self, *arrays: Any, code: TorchCode) -> list[Any]:
        return code(*[np.array(x) for x in arrays])

    def xla(self, *arrays: Any, code: TorchCode) -> list[Any]:
        return on_host(code, code.out_types, *arrays)

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        along = params["code"].along
        return () if along is None else range(len(along[1]), count)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, code: TorchCode) -> Any:
        given = [t for t in tangents if t is not None]
        found = iter(self(*primals, *given, code=code.pushforward(tuple([t is not None for t in tangents]))))
        return self(*primals, code=code), [next(found) if is_inexact(t.dtype) else None for t in code.out_types]

    def transpose(self, cotangents: Any, operands: Sequence[Any], *, code: TorchCode) -> list[Tangent]:
        are_linear = tuple([isinstance(x, ArrayType) for x in operands])
        given = [full_like(t, 0) if ct is None else ct for ct, t in zip(cotangents, code.out_types, strict=True)]
        function, active = code.along or (None, ())
        if function is not None and are_linear == (*[False] * len(active), *[True] * active.count(True)):
            # The transpose of a derivative is the pullback, for which more functions of torch have rules.
            found = self(*operands[: len(active)], *given, code=function.pullback(active))
        else:
            points = [full_like(x, 0) if is_linear else x for x, is_linear in zip(operands, are_linear, strict=True)]
            found = self(*points, *given, code=code.pullback(are_linear))
        remaining = iter(found)
        return [next(remaining) if is_linear else None for is_linear in are_linear]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, code: TorchCode) -> Any:
        results = self(*operands, code=code.batched(size, tuple(batched)))
        return results, [True] * len(results)


call_torch = CallTorch()
