"""Shard: an array, and how it is divided over the devices of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.pieces import each_on_itself
from ..core.on_numpy import Memory
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType
from .shapes import StructuralPrimitive, same_before


class Shard(StructuralPrimitive):
    """`x`, divided over the devices of `mesh` as `spec` says; on NumPy arrays, `x`.

    Tangents and cotangents are divided in the same way.  How the axis of a batch is divided is left to XLA.
    """

    name = "shard"
    memory = Memory.VIEW

    def type_rule(self, x: ArrayType, *, mesh: Any, spec: Any) -> ArrayType:
        return x

    def numpy(self, x: Any, *, mesh: Any, spec: Any) -> Any:
        return x

    def python(self, operands: Sequence[str], params: Params) -> str:
        return operands[0]

    def xla(self, x: Any, *, mesh: Any, spec: Any) -> Any:
        import jax
        from jax.sharding import NamedSharding

        if isinstance(x, jax.core.Tracer):
            return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))
        return jax.device_put(x, NamedSharding(mesh, _filled_in(spec, x, mesh)))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [each_on_itself(types[0].shape)]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, mesh: Any, spec: Any) -> list[Tracer]:
        return [shard(ct, mesh=mesh, spec=spec)]

    def simplify(self, operands: Sequence[Tracer], *, mesh: Any, spec: Any) -> Tracer | None:
        (x,) = operands
        inner = same_before(self, x)
        return x if inner is not None and inner[1] == {"mesh": mesh, "spec": spec} else None

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, mesh: Any, spec: Any) -> Any:
        from jax.sharding import PartitionSpec

        return shard(operands[0], mesh=mesh, spec=PartitionSpec(PartitionSpec.UNCONSTRAINED, *spec)), True


def _filled_in(spec: Any, x: Any, mesh: Any) -> Any:
    """A spec whose unconstrained entries are those that a JAX array has, where it is divided over the same mesh."""
    from jax.sharding import NamedSharding, PartitionSpec

    is_there = isinstance(x.sharding, NamedSharding) and x.sharding.mesh == mesh
    own = (*(x.sharding.spec if is_there else ()), *[None] * x.ndim)
    taken = {name for entry in spec for name in _names_in(entry)}
    return PartitionSpec(
        *(
            e if e is not PartitionSpec.UNCONSTRAINED else None if taken.intersection(_names_in(o)) else o
            for e, o in zip(spec, own, strict=False)
        )
    )


def _names_in(entry: Any) -> tuple[str, ...]:
    return (entry,) if isinstance(entry, str) else entry if isinstance(entry, tuple) else ()


shard = Shard()
