"""Black boxes: Python functions that are not traced but run on concrete values, also in compiled programs.

Only the types of their results are known.  Their derivative comes from the rule of the enclosing function, and `final`
marks values that have no further derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule, Moving, Tangent
from ...core.program import Eqn
from ...core.trace import Tracer
from ...core.types import ArrayType, is_inexact, type_of
from ...ops.host import on_host
from .host_call import UserCode


class Code:
    """A Python function of arrays that returns arrays of known types.

    Args:
        name: its name in messages.
        function: takes NumPy arrays, and returns a list of them.  It must be pure: it is called again if a value is
            recomputed, and not at all if nothing uses a result.
        types: types of the results.
        reason: why it is not traced.
    """

    def __init__(
        self, name: str, function: Callable[..., Sequence[Any]], types: Sequence[ArrayType], reason: str
    ) -> None:
        self.name = name
        self.function = function
        self.types = tuple(types)
        self.reason = reason

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __call__(self, *arrays: Any) -> list[Any]:
        """The results.

        Raises:
            TypeError: the results have other types.
        """
        results = [np.asarray(x)[()] for x in self.function(*arrays)]
        found = tuple(type_of(x) for x in results)
        if found != self.types:
            raise TypeError(
                f"{self.name} is Python code that cannot be traced, so it must always return arrays of the same types; "
                f"before it returned {_listed(self.types)}, now {_listed(found)}"
            )
        return results


def _listed(types: Sequence[ArrayType]) -> str:
    return ", ".join(map(str, types)) or "nothing"


class Batch(NamedTuple):
    """A batch axis that a call is mapped over: the number of lanes, and which operands differ between them."""

    size: int
    flags: tuple[bool, ...]


class BlackBox(UserCode):
    """The results of `code` with the indices `outs`, called once per lane of the `batches` that it is mapped over.

    The outermost batch comes first.
    """

    name = "black_box"

    def apply(self, code: Code, operands: Sequence[Any]) -> list[Any]:
        """Record that `code` runs on the operands; return its results."""
        return self.bind_all(operands, {"code": code, "batches": (), "outs": tuple(range(len(code.types)))})

    def type_rule(
        self, *types: ArrayType, code: Code, batches: tuple[Batch, ...], outs: tuple[int, ...]
    ) -> list[ArrayType]:
        lanes = tuple(b.size for b in batches)
        found = [code.types[i] for i in outs]
        return [t.with_shape((*lanes, *t.shape)) for t in found]

    def numpy(self, *arrays: Any, code: Code, batches: tuple[Batch, ...], outs: tuple[int, ...]) -> list[Any]:
        if not batches:
            # The code may write to its arguments.
            results = code(*(np.array(x)[()] for x in arrays))
            return [results[i] for i in outs]
        (size, flags), *inner = batches
        results = [np.empty(t.shape, t.dtype) for t in self.type_rule(code=code, batches=batches, outs=outs)]
        for i in range(size):
            operands = [x[i] if f else x for x, f in zip(arrays, flags, strict=True)]
            found = self.numpy(*operands, code=code, batches=tuple(inner), outs=outs)
            for y, value in zip(results, found, strict=True):
                y[i] = value
        return results

    def xla(self, *arrays: Any, **params: Any) -> list[Any]:
        return on_host(lambda *xs: self.numpy(*xs, **params), self.type_rule(**params), *arrays)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, code: Code, **params: Any) -> Any:
        if any(is_inexact(code.types[i].dtype) for i in params["outs"]):
            raise no_derivative(
                code.name, f"is Python code that could not be traced, so there is no second derivative: {code.reason}"
            )
        results = self(*primals, code=code, **params)
        return results, [None] * len(results)

    def transpose(self, cotangents: Any, operands: Sequence[Any], *, code: Code, **params: Any) -> Any:
        raise MissingRule(
            f"{code.name} is Python code that could not be traced, so it has no transpose{at_line(user_line())}"
        )

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        batches: tuple[Batch, ...],
        **params: Any,
    ) -> Any:
        results = self(*operands, batches=(Batch(size, tuple(batched)), *batches), **params)
        return results, [True] * len(results)

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        params = {**eqn.params, "outs": tuple(i for i, u in zip(eqn.params["outs"], used, strict=True) if u)}
        return Eqn(self, eqn.operands, params, tuple(y for y, u in zip(eqn.outputs, used, strict=True) if u), eqn.line)


black_box = BlackBox()


def no_derivative(name: str, why: str) -> MissingRule:
    """The error for differentiating code that has no derivative."""
    return MissingRule(f"the derivative of {name} was asked for, but it {why}{at_line(user_line())}")


class Final(Moving):
    """The operand, unchanged.  Differentiating it is an error, which names the function `of`."""

    name = "final"

    def type_rule(self, x: ArrayType, *, of: str) -> ArrayType:
        return x

    def numpy(self, x: Any, *, of: str) -> Any:
        return x

    def python(self, operands: Sequence[str], params: Any) -> str | None:
        return operands[0]

    def xla(self, x: Any, *, of: str) -> Any:
        return x

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        # Left to the rule for derivatives, which is an error.
        return None

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, of: str) -> Any:
        raise no_derivative(of, "is marked by once_differentiable, so there is no second derivative")

    def transpose(self, cotangents: Any, operands: Sequence[Any], *, of: str) -> list[Tangent]:
        return [cotangents]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, of: str) -> Any:
        return self(operands[0], of=of), batched[0]


final = Final()
