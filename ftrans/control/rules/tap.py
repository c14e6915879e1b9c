"""Tap: gives a name to an intermediate value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base import tree
from ...base.pieces import each_on_itself
from ...core.primitive import Moving, Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType


class Tap(Moving):
    """`x`, unchanged, with a name: it is leaf number `leaf` of a container of the given structure."""

    name = "tap"

    def type_rule(self, x: ArrayType, *, name: str, leaf: int, structure: tree.Structure) -> ArrayType:
        return x

    def numpy(self, x: Any, **params: Any) -> Any:
        return x

    def python(self, operands: Sequence[str], params: Params) -> str:
        return operands[0]

    def xla(self, x: Any, **params: Any) -> Any:
        return x

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [each_on_itself(types[0].shape)]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        return self(primals[0], **params), tangents[0]

    def transpose(self, cotangents: Any, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        return [cotangents]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> tuple[Any, Any]:
        return self(operands[0], **params), batched[0]


tap = Tap()
