"""to_torch: a function written with NumPy -> a function of tensors of torch, which torch differentiates.

A call is traced once, on arrays that share the memory of the tensors.  Its program is one node of torch's graph.  The
derivatives of a program are programs, and nodes like it; so all orders, and the transformations of `torch.func`, close.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..api import lending
from ..api.call import check_function, name_of, named, run, trace_flat
from ..api.jitted import Jitted
from ..base import tree
from ..base.cell import Eager
from ..base.foreign_arrays import is_tensor
from ..base.type_questions import is_plain
from ..control.rolling.side_by_side import side_by_side
from ..core.program import Program
from ..core.trace import NoWitness, current_builder
from ..core.types import ArrayType, is_inexact, type_of
from ..numpy.promotion import has_tracer
from ..transforms.batch import batch as batch_program
from ..transforms.simplify import for_compiler
from ..xla import Compiled, is_jax
from . import derived
from .derived import Flags
from .tensors import array_of, check_tensors, dtype_in_torch, tensor_of, type_of_tensor

_PLAIN = (np.ndarray, np.generic, float, int, bool, complex)


def to_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as a function of tensors of torch, with the derivatives that ftrans gives it.

    torch sees one operation.  Its gradients, second and higher derivatives are programs of ftrans, in
    `torch.autograd.grad` (with `create_graph`, too), `backward()`, forward mode, and `torch.func.grad`, `vjp`, `jvp`,
    `jacrev`, `jacfwd`, `hessian` and `vmap`, in any composition.  On the host, arrays and tensors share their memory;
    tensors on a GPU are computed with there, by JAX, if JAX can.  `nn.to_torch` is about weights: it makes a state
    dict of a model.

    Args:
        f: the function, written with NumPy; or what `ft.jit` returns, which is then compiled, as are its derivatives.
            It must not change its arguments from outside of the trace, and is traced on each call, unless it is
            compiled.

    Returns:
        A function of the same arguments.  Tensors among them, also in tuples, lists, dicts and dataclasses, reach `f`
        as arrays of the same shapes and dtypes; anything else reaches it as it is, and is constant.  Arrays and numbers
        in the result of `f` become tensors, with its dtypes (NumPy's promotion holds inside), on the device of the
        arguments; other objects in it are passed on.

    Raises:
        TypeError: `f` is not callable; later, a tensor is sparse, or has a dtype that NumPy does not have; or JAX does
            not compute on its device.
        ValueError: tensors are on different devices.

    Example:
        >>> import numpy as np, torch, ftrans as ft  # doctest: +SKIP
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)  # doctest: +SKIP
        >>> ft.to_torch(lambda x: np.sum(x**3))(x).backward()  # doctest: +SKIP
        >>> x.grad  # doctest: +SKIP
        tensor([ 3., 12.])
    """
    check_function(f, "to_torch")

    @functools.wraps(f)
    def f_of_tensors(*args: Any, **kwargs: Any) -> Any:
        call = Call(f, args, kwargs)
        return call.result(apply(call, call.tensors))

    return named(f_of_tensors, f, "to_torch")


class Operation:
    """A program that is applied to tensors.

    Attributes:
        program: the program; its inputs are the tensors, then the constants.
        constants: arrays.
        count: how many of its outputs are results; guards may follow.
        is_compiled: whether XLA compiles it.
        wanted: which tensors will be differentiated, so that a run keeps residuals for them.
        residuals: what a run has kept.
    """

    program: Program
    count: int

    def __init__(self, constants: Sequence[Any] = (), is_compiled: bool = False) -> None:
        self.constants = constants
        self.is_compiled = is_compiled
        self.wanted: Flags = ()
        self.residuals: list[Any] | None = None

    def of(self, program: Program, operation: Operation | None = None) -> Operation:
        """The operation of another program with the same constants, which follow its tensors."""
        found = Operation(self.constants, self.is_compiled) if operation is None else operation
        found.program, found.count = program, len(program.outputs)
        return found

    def prepare(self, types: Sequence[ArrayType]) -> None:
        """See that the program is known, for tensors of these types."""

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The results for arrays."""
        inputs = [*arrays, *self.constants]
        if not any(self.wanted):
            return self.run_program(self.program, inputs)[: self.count]
        values = derived.with_residuals(self.program, self.with_constants(self.wanted))
        outs = self.run_program(values, inputs)
        self.residuals = outs[len(self.program.outputs) :]
        return outs[: self.count]

    def run_program(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of one of its programs."""
        if not self.is_compiled:
            return run(program, inputs)
        compiled = program.derive("compiled", lambda: Compiled(side_by_side(for_compiler(program))))
        outs = compiled(*inputs)
        return list(outs) if any(map(is_jax, inputs)) else list(compiled.on_host(outs, inputs))

    def with_constants(self, flags: Sequence[bool]) -> Flags:
        """Flags of the tensors as flags of all inputs of the program."""
        return (*flags, *[False] * (len(self.program.inputs) - len(flags)))

    def pullback(self, active: Flags) -> Operation:
        """From the tensors and a cotangent for each floating-point result to those of the active tensors."""
        program = derived.pullback(self.program, self.count, self.with_constants(active))
        return self.of(_constants_last(program, len(active), len(self.constants)), Pullback(self, active))

    def pushforward(self, active: Flags) -> Operation:
        """From the tensors and the tangents of active ones to a tangent for each floating-point result."""
        program = derived.pushforward(self.program, self.count, self.with_constants(active))
        return self.of(_constants_last(program, len(active), len(self.constants)))

    def batched(self, size: int, flags: Flags) -> tuple[Operation, Flags]:
        """The same for a batch, and which results have its axis."""
        found = batch_program(self.program, size, self.with_constants(flags))
        operation = self.of(found.program)
        operation.count = self.count
        return operation, found.out_batched[: self.count]

    def is_differentiable(self) -> list[bool]:
        """Which of the results are floating-point."""
        return [is_inexact(t.dtype) for t in self.program.out_types[: self.count]]


class Pullback(Operation):
    """A pullback, which uses what its operation has kept.

    Args:
        source: the operation.
        active: which of its tensors are differentiated.
    """

    def __init__(self, source: Operation, active: Flags) -> None:
        super().__init__(source.constants, source.is_compiled)
        self._source = source
        self._active = active

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        source = self._source
        if any(self.wanted) or source.residuals is None or source.wanted != self._active:
            return super().run(arrays)
        linear = derived.from_residuals(source.program, source.count, source.with_constants(self._active))
        return self.run_program(linear, [*source.residuals, *arrays[len(self._active) :]])


def _constants_last(program: Program, tensors: int, constants: int) -> Program:
    """A program whose inputs are tensors, constants and further tensors, with the constants last."""

    def make() -> Program:
        first, middle, last = (
            program.inputs[:tensors],
            program.inputs[tensors : tensors + constants],
            program.inputs[tensors + constants :],
        )
        return Program(program.name, [*first, *last, *middle], program.eqns, program.outputs)

    return program.derive(("constants last", tensors, constants), make)


class Call(Operation):
    """A call of a function with tensors among its arguments.  Its program is known when it has run.

    Attributes:
        tensors: the tensors.

    Args:
        f: the function.
        args: its arguments.
        kwargs: its keyword arguments.
    """

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        compiled = getattr(getattr(f, "lower", None), "__self__", None)
        super().__init__(is_compiled=type(compiled) is Jitted)
        self._f = f
        self._leaves, self._structure = tree.flatten((args, kwargs))
        self._places = [i for i, x in enumerate(self._leaves) if is_tensor(x)]
        self.tensors = [self._leaves[i] for i in self._places]
        if self.tensors:
            check_tensors(self.tensors, self._names, "to_torch")

        self._others = [None if is_tensor(x) else lending.lent(x) for x in self._leaves]
        self._out_structure: Any = None
        # Of the leaves of the result, those that are no arrays.
        self._out_others: dict[int, Any] = {}
        self._is_known = False

    def _names(self) -> list[str]:
        """What the tensors are called in messages."""
        paths = tree.paths(tree.unflatten(self._structure, self._leaves))
        return [f"argument {paths[i][3:]}" for i in self._places]

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        if self.is_compiled and self.tensors and current_builder() is None:
            return self._arrays(self._call([_Handed(x, self) for x in arrays]))[: self.count]
        self._trace([type_of(x) for x in arrays], arrays)
        return super().run(arrays)

    def run_jitted(self, program: Program, args: Sequence[Any]) -> list[Any]:
        """The results of the program that a compiled function holds, which is then that of the call."""
        tensors = [i for i, x in enumerate(args) if type(x) is _Handed]
        others = [i for i, x in enumerate(args) if type(x) is not _Handed]
        order = (*tensors, *others)

        def make() -> Program:
            return Program(program.name, [program.inputs[i] for i in order], program.eqns, program.outputs)

        self._set(program.derive(("inputs in order", order), make), [args[i] for i in others])
        return super().run([args[i].array for i in tensors])

    def prepare(self, types: Sequence[ArrayType]) -> None:
        """Trace the call for one element of a batch."""
        if not self._is_known:
            name = name_of(self._f)
            why = f"torch.func.vmap maps {name}, and the value may differ between its elements; ftrans.vmap knows them"
            self._trace(types, NoWitness(why))

    def result(self, tensors: Sequence[Any]) -> Any:
        """The result of the call, with tensors for its arrays."""
        remaining = iter(tensors)
        count = self._out_structure.num_leaves
        leaves = [self._out_others[i] if i in self._out_others else next(remaining) for i in range(count)]
        return tree.unflatten(self._out_structure, leaves)

    def _set(self, program: Program, constants: Sequence[Any]) -> None:
        self.program, self.constants, self.count = program, constants, len(program.outputs)
        self._is_known = True

    def _trace(self, types: Sequence[ArrayType], witnesses: Sequence[Any] | NoWitness) -> None:
        traced, _ = trace_flat(self._f, types, lambda tracers: self._arrays(self._call(tracers)), witnesses)
        self._set(traced.program, traced.captured)

    def _call(self, values: Sequence[Any]) -> Any:
        """The result of the function, with these values for tensors."""
        leaves = list(self._others)
        for i, x in zip(self._places, values, strict=True):
            leaves[i] = x
        args, kwargs = tree.unflatten(self._structure, leaves)
        return self._f(*args, **kwargs)

    def _arrays(self, result: Any) -> list[Any]:
        """The arrays and numbers in the result of the function."""
        leaves, self._out_structure = tree.flatten(result)
        self._out_others = {i: x for i, x in enumerate(leaves) if not _is_array(x)}
        arrays = [x for i, x in enumerate(leaves) if i not in self._out_others]
        self.count = len(arrays)
        return arrays


def _is_array(x: Any) -> bool:
    return has_tracer(x) or is_plain(x, _PLAIN) or is_jax(x)


class _Handed(Eager):
    """An array that is handed to a compiled function, to get hold of the program that it holds for it.

    Args:
        array: the array.
        call: the call that gets the program.
    """

    __slots__ = ("array", "call")

    def __init__(self, array: Any, call: Call) -> None:
        self.array = array
        self.call = call

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        """Dtype of the array."""
        return self.array.dtype

    def concrete(self) -> Any:
        return self.array

    def is_active(self) -> bool:
        return False

    @classmethod
    def apply_program(
        cls, program: Any, args: Sequence[Any], compiled: Callable[..., Any] | None = None, name: str | None = None
    ) -> list[Any]:
        call: Call = next(x.call for x in args if type(x) is cls)
        return call.run_jitted(program, args)


def apply(operation: Operation, tensors: Sequence[Any]) -> list[Any]:
    """The results of an operation on tensors, as tensors in torch's graph."""
    import torch

    if torch.is_grad_enabled():
        operation.wanted = tuple([x.requires_grad for x in tensors])
    return list(_node().apply(operation, *tensors))


@functools.cache
def _node() -> Any:
    """The class of the nodes that programs are in torch's graph."""
    import torch

    class Program(torch.autograd.Function):
        """A program of ftrans."""

        @staticmethod
        def forward(operation: Operation, *tensors: Any) -> Any:
            device = tensors[0].device if tensors else None
            arrays = [array_of(x) for x in tensors]
            results = operation.run(arrays)
            # JAX arrays never change, but tensors may.
            kept = {id(x) for x in (*arrays, *operation.constants) if is_jax(x)}
            return tuple([tensor_of(y, device).clone() if id(y) in kept else tensor_of(y, device) for y in results])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            operation, *tensors = inputs
            ctx.operation = operation
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            are_floating = zip(output, operation.is_differentiable(), strict=True)
            ctx.mark_non_differentiable(*[y for y, is_floating in are_floating if not is_floating])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            tensors = ctx.saved_tensors
            active = tuple(ctx.needs_input_grad[1:])
            given = zip(cotangents, ctx.operation.program.out_types, strict=False)
            device = tensors[0].device
            seeds = [_zeros(t, device) if ct is None else ct for ct, t in given if is_inexact(t.dtype)]
            found = iter(apply(ctx.operation.pullback(active), [*tensors, *seeds]))
            return (None, *[next(found) if a else None for a in active])

        @staticmethod
        def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
            tensors = ctx.saved_tensors
            active = tuple([t is not None for t in tangents])
            given = [t for t in tangents if t is not None]
            found = iter(apply(ctx.operation.pushforward(active), [*tensors, *given]))
            outs = [next(found) if is_floating else None for is_floating in ctx.operation.is_differentiable()]
            return tuple(outs)

        @staticmethod
        def vmap(info: Any, in_dims: Any, operation: Operation, *tensors: Any) -> Any:
            flags = tuple([axis is not None for axis in in_dims[1:]])
            axes = zip(tensors, in_dims[1:], strict=True)
            moved = [x if axis is None else x.movedim(axis, 0) for x, axis in axes]
            types = [type_of_tensor(x[0] if b else x) for x, b in zip(moved, flags, strict=True)]
            operation.prepare(types)
            batched, out_flags = operation.batched(info.batch_size, flags)
            return tuple(apply(batched, moved)), tuple([0 if b else None for b in out_flags])

    return Program


def _zeros(type: ArrayType, device: Any) -> Any:
    import torch

    return torch.zeros(type.shape, dtype=dtype_in_torch(type.dtype), device=device)
