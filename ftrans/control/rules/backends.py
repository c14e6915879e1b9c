"""Backend: where an iterative solver runs, on NumPy arrays or inside an XLA program.

Solvers are written once, against a backend: its array functions, its loop, and its way to run programs.  They work on
arrays whose last axis is a vector; all axes before it are *lanes*, independent problems that are solved together.  A
lane that has finished does not change any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...base.surroundings import is_divided
from ...core.program import Program
from ...run.stand_alone import Function
from ...run.straightline import function_to_run
from ...xla.execute import lower
from ...xla.kinds import is_jax_tracer
from ...xla.meshes import mesh_of
from ..convergence import ConvergenceError

State = tuple[Any, ...]


class Backend(NamedTuple):
    """What a solver computes with.

    Attributes:
        np: the array functions, `numpy` or `jax.numpy`.
        loop: `(condition, body, state)`: the state after `body` has run while `condition` held.
        put: `(array, index, value)`: a copy of the array with `value` at an index of its first axis.
        function: a program as a function of arrays, which returns a list.
        solve: solve linear systems; results for singular matrices are not finite.
        whole: `(array, count)`: the array with its last axes whole on each device, so that what elimination needs of
            other devices is gathered once, and not in every operation.
    """

    np: Any
    loop: Callable[[Callable[[State], Any], Callable[[State], State], State], State]
    put: Callable[[Any, Any, Any], Any]
    function: Callable[[Program], Callable[..., list[Any]]]
    solve: Callable[[Any, Any], Any]
    whole: Callable[[Any, int], Any]

    def dot(self, x: Any, y: Any) -> Any:
        """The inner product of each lane."""
        return self.np.sum(self.np.conj(x) * y, -1)

    def generic(self, size: int, dtype: Any) -> Any:
        """A unit vector without structure, so that it is special to no matrix that occurs in practice."""
        x = self.np.cos(self.np.arange(1, size + 1) ** 2)
        return (x / self.np.sqrt(self.np.sum(x * x))).astype(dtype)

    def norm(self, x: Any) -> Any:
        """The Euclidean norm of each lane."""
        return self.np.sqrt(self.np.sum(self.np.abs(x) ** 2, -1))


def _python_loop(condition: Callable[[State], Any], body: Callable[[State], State], state: State) -> State:
    while condition(state):
        state = body(state)
    return state


def _put(array: Any, index: Any, value: Any) -> Any:
    changed = array.copy()
    changed[index] = value
    return changed


def _numpy_function(program: Program) -> Callable[..., list[Any]]:
    return partial(_tried, function=function_to_run(program), types=_types(program))


def written_function(program: Program) -> Callable[..., list[Any]]:
    """The same for source that is written out."""
    return partial(_tried, function=Function(program), types=_types(program))


def _types(program: Program) -> tuple[Any, ...]:
    return tuple((t.shape, t.dtype) for t in program.out_types)


def _tried(*arrays: Any, function: Any, types: Sequence[Any]) -> list[Any]:
    try:
        return list(function(*arrays))
    except (np.linalg.LinAlgError, ConvergenceError):
        # A trial point may lie where the function is not defined; the solver then takes a shorter step.
        return [np.full(shape, np.nan, dtype)[()] for shape, dtype in types]


def _numpy_solve(a: Any, b: Any) -> Any:
    try:
        return np.linalg.solve(a, b[..., None])[..., 0]
    except np.linalg.LinAlgError:
        if a.ndim == 2:
            return np.full_like(b, np.nan)
        return np.stack([_numpy_solve(x, y) for x, y in zip(a, b, strict=True)])


NUMPY = Backend(np, _python_loop, _put, _numpy_function, _numpy_solve, lambda x, _: x)


def xla() -> Backend:
    """The backend of programs that XLA compiles."""
    import jax.numpy as jnp
    from jax import lax

    def function(program: Program) -> Callable[..., list[Any]]:
        return lambda *arrays: lower(program, arrays)

    def put(array: Any, index: Any, value: Any) -> Any:
        return lax.dynamic_update_index_in_dim(array, value, index, 0)

    def solve(a: Any, b: Any) -> Any:
        return jnp.linalg.solve(a, b[..., None])[..., 0]

    return Backend(jnp, lax.while_loop, put, function, solve, _whole)


def _whole(x: Any, count: int) -> Any:
    mesh = mesh_of([x]) if is_divided() else None
    if mesh is None:
        return x
    from jax import lax
    from jax.sharding import NamedSharding, PartitionSpec

    spec = PartitionSpec(*[PartitionSpec.UNCONSTRAINED] * (x.ndim - count), *[None] * count)
    return lax.with_sharding_constraint(x, NamedSharding(mesh, spec))


def compiled(program: Program, key: Any, function: Callable[..., list[Any]], arrays: Sequence[Any]) -> list[Any]:
    """Apply a function of JAX arrays; outside of a compiled program, it is compiled once per program and key."""
    from jax import jit

    if any(map(is_jax_tracer, arrays)):
        return function(*arrays)
    return list(program.derive(("compiled", key), lambda: jit(function))(*arrays))
