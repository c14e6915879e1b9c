"""Running programs through JAX: op by op on JAX arrays, or compiled as a whole.

JAX only compiles here; it never differentiates.  The process-wide configuration of JAX is not touched: 64-bit
types are enabled in a scope around each trace and call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import tree
from ..base.interrupts import uninterrupted
from ..base.observe import Observer, current_observer
from ..base.source import at_line, user_line
from ..base.surroundings import NeedsHost, divided
from ..core.interpret import interpret
from ..core.program import Const, Eqn, Program
from ..core.trace import building
from ..core.types import type_of
from ..core.witness import CodeBuilder
from .fusion import around, kept_values
from .kinds import is_jax, seen_anew
from .layouts import Layouts, fenced, moves_channels, plain
from .meshes import Relabelled, is_on_several_devices, other_devices
from .starting import start
from .traces import outside_of_traces


class _Process:
    """Whether JAX has run something in this process, and whether it has in the one that this was forked from.

    Its threads are not in a forked child, where whoever waits for them waits for ever.

    Attributes:
        is_one_of_several: whether `jax.distributed` has put it together with others.
    """

    __slots__ = ("has_run", "is_lost", "is_one_of_several")

    def __init__(self) -> None:
        self.has_run = self.is_lost = self.is_one_of_several = False

    @property
    def is_special(self) -> bool:
        """Whether running takes more than calling what JAX has compiled."""
        return self.is_lost or self.is_one_of_several

    def forked(self) -> None:
        """Note that this is a child from now on."""
        self.is_lost = self.has_run


process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=process.forked)


def about_to_run() -> None:
    """Start JAX, if nobody has, and note that it is about to run something.

    Raises:
        RuntimeError: this process was forked from one in which it has.
    """
    if process.is_lost:
        raise RuntimeError(
            "this process was forked from one that has compiled functions or computed on JAX arrays, and the threads "
            "of JAX do not exist here, so that it would wait for them for ever. Start processes by "
            'multiprocessing.get_context("spawn"), or fork before JAX is used first; functions of NumPy arrays run '
            f"here as they are, without jit{at_line(user_line())}"
        )
    start()
    if not process.has_run:
        import jax

        process.has_run, process.is_one_of_several = True, jax.distributed.is_initialized()


def lower(program: Program, args: Sequence[Any], observer: Observer | None = None) -> list[Any]:
    """Apply `program` to JAX arrays or tracers, equation by equation; `observer` is told of each."""
    import jax
    from jax import lax

    form = program.executable()
    kept = kept_values(form)
    layouts = Layouts() if observer is None and moves_channels(form, args) else None
    arrays: dict[int, Any] = {}

    def array(x: Any) -> Any:
        if not isinstance(x, Const):
            return x
        found = arrays.get(id(x))
        if found is None:
            found = lax.full(x.type.shape, x.value, x.type.dtype) if x.is_splat else jax.numpy.asarray(x.value)
            arrays[id(x)] = found
        return found

    def run(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
        try:
            with around(eqn):
                result = eqn.primitive.xla(*values, **eqn.params) if layouts is None else layouts.xla(eqn, values)
        except NeedsHost as error:
            error.eqn = error.eqn or eqn
            raise
        except Exception as error:
            if eqn.line is not None:
                error.add_note(f"  at {eqn.line.describe()}")
            raise
        if eqn.primitive.multiple_results:
            return result
        return (fenced(result) if eqn.outputs[0] in kept else result,)

    def apply(eqn: Eqn, operands: list[Any]) -> Sequence[Any]:
        # XLA broadcasts a scalar among the operands of an elementwise operation by itself.
        scalar_will_do = eqn.primitive.broadcasts and not all(isinstance(x, Const) for x in operands)
        values = [x.value if scalar_will_do and isinstance(x, Const) and x.is_splat else array(x) for x in operands]
        if observer is None:
            return run(eqn, values)
        return observer.equation(eqn, values, lambda: jax.block_until_ready(run(eqn, values)))

    return [plain(array(x)) for x in interpret(form, args, apply, lambda const: const)]


@uninterrupted
def run_program(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run `program` op by op through JAX; results are JAX arrays."""
    import jax

    about_to_run()
    with jax.enable_x64(True):
        given = Relabelled(device_arrays(args))
        try:
            with given.context, divided(any(map(is_on_several_devices, given.arrays))):
                return given.back(lower(program, given.arrays, current_observer()))
        except ValueError:
            explained = other_devices(given.arrays)
            if explained is None:
                raise
            raise explained from None


def run_function(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    run: Callable[[Program, Sequence[Any]], list[Any]] = run_program,
) -> Any:
    """Call a function written for traced values on JAX arrays: it is traced, and run, op by op if not otherwise."""
    leaves, structure = tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if is_jax(x)]
    values = [leaves[i] for i in places]
    builder = CodeBuilder([type_of(x) for x in values], values)
    with building(builder):
        for i, tracer in zip(places, builder.inputs(), strict=True):
            leaves[i] = tracer
        new_args, new_kwargs = tree.unflatten(structure, leaves)
        outs, out_structure = tree.flatten(f(*new_args, **new_kwargs))
        program = builder.finish(outs, getattr(f, "__name__", "function"))
    return tree.unflatten(out_structure, run(program, [*values, *builder.captures.values]))


@uninterrupted
def device_arrays(arrays: Sequence[Any]) -> list[Any]:
    """Arrays as JAX arrays of the same dtypes, none of which is a part of what JAX is tracing unless it was before."""
    about_to_run()
    if all(map(is_jax, arrays)):
        return [*arrays]
    import jax

    arrays = seen_anew([x if is_jax(x) else np.asarray(x) for x in arrays])
    with jax.enable_x64(True), outside_of_traces():
        return [x if is_jax(x) else jax.numpy.asarray(x) for x in arrays]


@uninterrupted
def jax_leaves(
    f: Callable[[Any], Any], x: Any, placement: Callable[[tuple[Any, ...], Any], Any] | None = None
) -> tuple[list[str], list[Any], Any]:
    """The result of a function for JAX, compiled: names of its leaves, the leaves, and its structure.

    Args:
        f: the function.
        x: its argument.
        placement: where a leaf is to be on a mesh of devices, from the names and indices that lead to it and its type;
            it is computed there, so no device ever holds more than its part.
    """
    about_to_run()
    import jax

    keys = jax.tree_util
    is_wide = any(np.dtype(leaf.dtype).itemsize >= 8 for leaf in keys.tree_leaves(x))
    with jax.enable_x64(is_wide):
        places = None
        if placement is not None:
            types, structure = keys.tree_flatten_with_path(jax.eval_shape(f, x))
            places = keys.tree_unflatten(structure, [placement(tuple(map(_key, path)), x) for path, x in types])
        paths, structure = keys.tree_flatten_with_path(jax.jit(f, out_shardings=places)(x))
    names = [keys.keystr(path, simple=True, separator=".") for path, _ in paths]
    return names, [leaf for _, leaf in paths], structure


def _key(entry: Any) -> Any:
    """The name or index in an entry of a path of JAX."""
    return next((getattr(entry, name) for name in ("key", "name", "idx") if hasattr(entry, name)), None)


@uninterrupted
def put_on_device(x: Any, device: Any) -> Any:
    """An array as a JAX array on a device, which is one of JAX's, or the name of a platform such as "gpu"."""
    about_to_run()
    import jax

    if isinstance(device, str):
        try:
            device = jax.devices(device)[0]
        except RuntimeError:
            known = ", ".join(sorted({d.platform for d in jax.devices()}))
            raise ValueError(f"there is no device {device!r} here; JAX sees {known}{at_line(user_line())}") from None
    with jax.enable_x64(True):
        return jax.device_put(seen_anew([x])[0], device)


def accelerator() -> Any:
    """The device that JAX uses by default, unless that is the CPU: then None."""
    about_to_run()
    import jax

    device = jax.devices()[0]
    return None if device.platform == "cpu" else device


@uninterrupted
def from_dlpack(x: Any) -> Any:
    """An array of another library as a JAX array that shares its memory.

    Raises:
        TypeError: JAX does not compute on its device.
    """
    about_to_run()
    import jax

    try:
        with jax.enable_x64(True):
            return jax.numpy.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        platforms = ", ".join(sorted({d.platform for d in jax.devices()}))
        raise TypeError(
            f"a {type(x).__name__} on the device {getattr(x, 'device', 'of its own')} cannot become an array of JAX, "
            f"which computes here on {platforms}: install JAX for that device, as jax[cuda12], or move the array to "
            f"the host ({error}){at_line(user_line())}"
        ) from None


def to_numpy(x: Any) -> Any:
    """A JAX array as a writable NumPy array of its own, or a NumPy scalar."""
    array = np.array(x)
    return array if array.ndim else array[()]


def all_to_numpy(arrays: Sequence[Any]) -> list[Any]:
    """The same for several arrays."""
    return [x if x.ndim else x[()] for x in map(np.array, arrays)]


class _Writable:
    """The memory of an array that nothing else uses, for an array that can be written to.

    Args:
        array: the array, which is kept as long as that one.
    """

    __slots__ = ("__array_interface__", "_array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self._array = array


def without_copy(x: Any, args: Sequence[Any]) -> Any:
    """A JAX array that nothing else holds, as a NumPy array that can be written to.

    It is copied if its memory may be that of one of the arguments that it was computed from, or its dtype is not one of
    NumPy's own.
    """
    array = np.asarray(x)
    alike = [np.asarray(y) for y in args if getattr(y, "nbytes", 0) == array.nbytes]
    if array.dtype.kind not in "biufc" or any([np.may_share_memory(array, y) for y in alike]):
        return array.copy()
    return np.asarray(_Writable(array))
