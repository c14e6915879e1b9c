"""Programs as operations of JAX: what a trace of JAX records where it meets a program, with the derivatives of ftrans.

JAX lowers such an operation to the equations of its program.  The derivative, transpose and batched form of an
operation are operations of the programs that ftrans makes of its program, so JAX may transform it in any order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.interrupts import uninterrupted
from ..core.primitive import MissingRule
from ..core.program import Program
from ..core.types import is_inexact
from ..transforms.batch import batch
from ..transforms.choices import with_choices_last
from ..transforms.differentiate import linearize, pruned
from ..transforms.jvp import jvp
from ..transforms.simplify import condense, for_compiler, for_differentiation
from ..transforms.transpose import transpose
from ..xla import Compiled, Division, about_to_run
from ..xla.execute import lower

Flags = tuple[bool, ...]


class JaxOperation:
    """A program that is called with arrays that JAX traces.

    Args:
        program: the program; its inputs are the arguments of a call.
        division: how arguments and results are divided over devices.
    """

    def __init__(self, program: Program, division: Division | None = None) -> None:
        self.program = program
        self._division = division or Division()

    @uninterrupted
    def __call__(self, *args: Any) -> list[Any]:
        """The results, as JAX arrays or tracers."""
        about_to_run()
        outs = _bind(self.program, None, _divided(args, self._division.inputs))
        return _divided(outs, self._division.results)


def _divided(arrays: Sequence[Any], shardings: Sequence[Any] | None) -> list[Any]:
    """Arrays with the shardings that are given for the first of them."""
    import jax

    wanted = shardings or ()
    return [
        x if i >= len(wanted) or wanted[i] is None else jax.lax.with_sharding_constraint(x, wanted[i])
        for i, x in enumerate(arrays)
    ]


def _bind(program: Program, linear: Flags | None, args: Sequence[Any]) -> list[Any]:
    """Record the operation, or run it where JAX traces none of the arguments."""
    import jax

    # Programs have their own types, whatever JAX's defaults are in the surrounding code.
    with jax.enable_x64(True):
        arrays = [_as_type(x, t.dtype) for x, t in zip(args, program.in_types, strict=True)]
        return list(_primitive().bind(*_varying_alike(arrays), program=program, linear=linear))


def _as_type(x: Any, dtype: Any) -> Any:
    """An array of JAX of this dtype; JAX hands numbers of Python and zeros in its own default types to rules."""
    import jax

    array = x if isinstance(x, jax.Array) else jax.numpy.asarray(np.asarray(x))
    return array if array.dtype == dtype else jax.lax.convert_element_type(array, dtype)


def _varying_alike(arrays: list[Any]) -> list[Any]:
    """Arrays of which all vary along the axes of a mesh that one varies along, inside of `jax.shard_map`.

    The transpose of this is the sum over these axes that the cotangent of a replicated array is.
    """
    import jax

    varying = [jax.typeof(x).manual_axis_type.varying for x in arrays]
    axes = frozenset().union(*varying)
    return [
        x if own == axes else jax.lax.pcast(x, tuple(sorted(axes - own)), to="varying")
        for x, own in zip(arrays, varying, strict=True)
    ]


@functools.cache
def _primitive() -> Any:
    """JAX's primitive.  Its parameters are the program, and which inputs it is linear in, if it is linear."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    primitive = Primitive("ftrans")
    primitive.multiple_results = True
    primitive.def_impl(_run)
    primitive.def_abstract_eval(_types)
    ad.primitive_jvps[primitive] = _jvp
    ad.primitive_transposes[primitive] = _transpose
    batching.primitive_batchers[primitive] = _batch
    mlir.register_lowering(primitive, _lowering)
    return primitive


def _form(program: Program, linear: Flags | None) -> Program:
    """A program as it is evaluated: derivatives that are linear have yet to get the zeros of choices."""
    if linear is None:
        return program
    return program.derive(("choices last", linear), lambda: with_choices_last(program, linear, forward=True))


def _run(*args: Any, program: Program, linear: Flags | None) -> list[Any]:
    compiled = program.derive(("operation", linear), lambda: Compiled(for_compiler(_form(program, linear))))
    return list(compiled(*args))


def _types(*args: Any, program: Program, linear: Flags | None) -> list[Any]:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    if not args:
        return [jax.core.ShapedArray(t.shape, t.dtype) for t in program.out_types]
    # Whole on each device of a mesh, or within `jax.shard_map` another value on each, as the arguments are.
    mesh, varying = args[0].sharding.mesh, args[0].manual_axis_type
    return [
        jax.core.ShapedArray(
            t.shape,
            t.dtype,
            sharding=NamedSharding(mesh, PartitionSpec(*[None] * len(t.shape))),
            manual_axis_type=varying,
        )
        for t in program.out_types
    ]


def _lowering(context: Any, *args: Any, **params: Any) -> Any:
    import jax
    from jax.interpreters import mlir

    # Within the operation nothing is summed over the axes of a mesh, so constants need not vary along them, either.
    types = [jax.core.ShapedArray(t.shape, t.dtype) for t in context.avals_in]
    return mlir.lower_fun(_lowered, multiple_results=True)(context.replace(avals_in=types), *args, **params)


def _lowered(*args: Any, program: Program, linear: Flags | None) -> list[Any]:
    import jax

    with jax.enable_x64(True):
        return lower(for_compiler(_form(program, linear)), args)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: Program, linear: Flags | None) -> Any:
    import jax
    from jax.interpreters import ad

    program = for_differentiation(_form(program, linear))
    active = tuple(
        is_inexact(t.dtype) and not isinstance(x, ad.Zero) for t, x in zip(program.in_types, tangents, strict=True)
    )
    given = [x for x, is_active in zip(tangents, active, strict=True) if is_active]
    count = len(program.outputs)
    try:
        parts = pruned(linearize(program, active), condense)
    except MissingRule:
        # Values and tangents are found together, which is all that forward mode needs.
        derived = jvp(program, active)
        outs = _bind(derived.program, None, [*primals, *given])
        results, found, out_active = outs[:count], iter(outs[count:]), derived.out_active
    else:
        outs = _bind(parts.values, None, primals)
        results, residuals, out_active = outs[:count], outs[count:], parts.out_active
        flags = (False,) * len(residuals) + (True,) * len(given)
        found = iter(_bind(parts.linear, flags, [*residuals, *given]))
    return results, [
        next(found) if is_active else ad.Zero(jax.typeof(y).to_tangent_aval())
        for y, is_active in zip(results, out_active, strict=True)
    ]


def _transpose(cotangents: Sequence[Any], *args: Any, program: Program, linear: Flags | None) -> list[Any]:
    from jax.interpreters import ad

    flags = tuple(map(ad.is_undefined_primal, args))
    active = tuple(not isinstance(ct, ad.Zero) for ct in cotangents)
    turned = transpose(condense(program), flags, active)
    known = [x for x, is_linear in zip(args, flags, strict=True) if not is_linear]
    outs = iter(_bind(turned.program, None, [*known, *[ct for ct, a in zip(cotangents, active, strict=True) if a]]))
    has_cotangent = iter(turned.in_active)
    return [
        None if not is_linear else _divided_as(x.aval, next(outs)) if next(has_cotangent) else ad.Zero(x.aval)
        for x, is_linear in zip(args, flags, strict=True)
    ]


def _divided_as(type: Any, x: Any) -> Any:
    """`x` divided over the Explicit axes of a mesh as a type says, since that is a part of the type."""
    import jax

    return jax.sharding.reshard(x, type.sharding) if any(type.sharding.spec) else x


def _batch(args: Sequence[Any], dims: Sequence[Any], *, program: Program, linear: Flags | None) -> Any:
    import jax

    flags = tuple(d is not None for d in dims)
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    if not isinstance(size, int):
        return _batch_of_any_size(program, linear, args, dims)
    arrays = [x if d is None else jax.numpy.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    mapped = batch(program, size, flags)
    outs = _bind(mapped.program, linear, arrays)
    return outs, [0 if is_batched else None for is_batched in mapped.out_batched]


def _batch_of_any_size(program: Program, linear: Flags | None, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    """The same for a size that `jax.export` leaves open: programs have shapes of numbers, so JAX maps the equations."""
    import jax

    @jax.custom_jvp
    def mapped(*args: Any) -> Any:
        return jax.vmap(lambda *xs: _lowered(*xs, program=program, linear=linear), in_axes=tuple(dims))(*args)

    @mapped.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        raise TypeError(
            f"JAX differentiates {program.name} mapped over an axis of symbolic size; take the derivative of one "
            "element first and map that: jax.vmap(jax.grad(f))"
        )

    return mapped(*args), [0] * len(program.outputs)
