"""Black boxes: Python functions that are not traced, but run on concrete values, also in compiled programs.

Nothing is known of such a function but the types of its results.  A derivative comes from the rule of the function that
it is a part of, and `final` marks values that have no further one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.primitive import MissingRule, Primitive, Tangent
from ..core.program import Eqn
from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import ArrayType, is_inexact, type_of
from .host_call import to_words


class Code:
    """A Python function of arrays that returns arrays of known types.

    Args:
        name: what it is called in messages.
        function: takes NumPy arrays, and returns a list of them.  It must be pure: it is called again where a value is
            computed again, and not at all where nothing uses a result.
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
            TypeError: they are of other types.
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
    """That a call is mapped over lanes: how many, and which of the operands differ between them."""

    size: int
    flags: tuple[bool, ...]


class BlackBox(Primitive):
    """The results `outs` of `code`, by their index, lane by lane in the `batches` that the call is mapped over.

    The outermost batch comes first.
    """

    name = "black_box"
    multiple_results = True

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
            # The code may write to what it is given.
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
        import jax

        given = [(x.shape, np.dtype(x.dtype)) for x in arrays]
        types = self.type_rule(**params)

        def call(*words: Any) -> list[Any]:
            flat = [np.array(w).reshape(-1) for w in words]
            values = [w.view(dtype).reshape(shape)[()] for w, (shape, dtype) in zip(flat, given, strict=True)]
            return [_in_words(y, t) for y, t in zip(self.numpy(*values, **params), types, strict=True)]

        shapes = [jax.ShapeDtypeStruct(w.shape, w.dtype) for w in (_in_words(None, t) for t in types)]
        words = jax.pure_callback(call, shapes, *map(to_words, arrays), vmap_method="sequential")
        return [_of_words(w, t.dtype) for w, t in zip(words, types, strict=True)]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, code: Code, **params: Any) -> Any:
        if any(is_inexact(code.types[i].dtype) for i in params["outs"]):
            raise no_derivative(code.name, f"which is Python code that could not be traced: {code.reason}")
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
    """The error for a derivative of a rule that has none."""
    return MissingRule(
        f"the derivative of {name} is wanted, {why}{at_line(user_line())}\n"
        "  So there is a first derivative, but no second one."
    )


def _in_words(x: Any, type: ArrayType) -> Any:
    """An array of a type (or zeros) as one of words of at most 32 bits, as `to_words` makes of JAX's arrays."""
    array = np.ascontiguousarray(np.zeros(type.shape, type.dtype) if x is None else x).reshape(type.shape)
    if type.dtype == np.complex128:
        return array.reshape(-1).view(np.uint32).reshape(*type.shape, 2, 2)
    if type.dtype.itemsize == 8 and type.dtype != np.complex64:
        return array.reshape(-1).view(np.uint32).reshape(*type.shape, 2)
    return array


def _of_words(words: Any, dtype: np.dtype[Any]) -> Any:
    """The JAX array of a dtype that words stand for."""
    from jax import lax

    if dtype == np.complex128:
        parts = lax.bitcast_convert_type(words, np.float64)
        return lax.complex(parts[..., 0], parts[..., 1])
    return words if words.dtype == dtype else lax.bitcast_convert_type(words, dtype)


class Final(Primitive):
    """The operand, unchanged.  Its derivative is an error: `name` says of what."""

    name = "final"
    only_moves = True
    aliases = True

    def type_rule(self, x: ArrayType, *, of: str) -> ArrayType:
        return x

    def numpy(self, x: Any, *, of: str) -> Any:
        return x

    def python(self, operands: Sequence[str], params: Any) -> str | None:
        return operands[0]

    def xla(self, x: Any, *, of: str) -> Any:
        return x

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, of: str) -> Any:
        raise no_derivative(of, "which is marked by once_differentiable")

    def transpose(self, cotangents: Any, operands: Sequence[Any], *, of: str) -> list[Tangent]:
        return [cotangents]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, of: str) -> Any:
        return self(operands[0], of=of), batched[0]


final = Final()
