"""Portable: a function as one program that no code of the user and no Python is needed for, and its lowering.

Nothing in it depends on the values of arguments, so Python code that looks at them is refused, and so are functions
that are computed on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..api.call import Traced, check_function, name_of, trace_flat, type_name
from ..api.rolling import with_stacked_captures
from ..base import tree
from ..base.cell import Eager, concrete
from ..base.contexts import in_own_context
from ..base.forks import lock
from ..base.interrupts import uninterrupted
from ..base.source import at_line, user_line
from ..base.surroundings import NeedsHost, exporting
from ..base.type_questions import is_plain
from ..control.rolling.side_by_side import side_by_side
from ..core.program import Program
from ..core.trace import NoWitness, current_builder
from ..core.types import ArrayType, type_of
from ..nn.cells.array_cell import ArrayCell
from ..transforms.simplify import for_compiler
from ..xla.execute import about_to_run, lower
from .signature import BadCall, Leaf, Signature, describe

_NUMBERS = (float, int, bool, complex)
# Held while a setting of JAX is another one for a moment.
_setting = lock()


class Portable(NamedTuple):
    """A function of arrays, apart from the code that it was written in.

    Attributes:
        name: the name of the function.
        program: takes the arrays of the arguments, then the constants.
        constants: the arrays that the function closes over.
        names: their names: those of a module have their paths.
        arguments: its arguments.
        results: its results.
        batched: which arrays of the arguments have a batch axis, which the program itself does not know.
    """

    name: str
    program: Program
    constants: list[np.ndarray[Any, Any]]
    names: list[str]
    arguments: Signature
    results: Signature
    batched: tuple[bool, ...]

    def stored(self) -> list[np.ndarray[Any, Any]]:
        """The constants as they are stored."""
        return [*map(_stored, self.constants)]

    def function(self) -> Callable[[Sequence[Any], Sequence[Any]], list[Any]]:
        """A function for JAX: of the stored constants and the arrays of the arguments, it returns those of results."""
        program, dtypes = self.program, [x.dtype for x in self.constants]

        def apply(constants: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
            return lower(program, [*arrays, *map(_read, constants, dtypes)])

        if not any(self.batched):
            return apply
        import jax

        return jax.vmap(apply, in_axes=(None, [0 if b else None for b in self.batched]))


@in_own_context
def portable(what: str, f: Callable[..., Any], args: tuple[Any, ...], batch: Any) -> Portable:
    """Trace a function that leaves this process.

    Args:
        what: who asks, for messages.
        f: the function.
        args: arguments of the types that it will be called with; those with a batch axis without that.
        batch: the position of the arguments with a batch axis, or several positions.
    """
    check_function(f, what)
    if current_builder() is not None:
        raise TypeError(f"{what} was called inside a function that is being traced{at_line(user_line())}")
    leaves, structure = tree.flatten(args)
    types = [_type(what, f, args, i, x) for i, x in enumerate(leaves)]
    batched = _batched(what, args, batch)

    def call(values: list[Any]) -> Any:
        return f(*tree.unflatten(structure, values))

    weak = [is_plain(x, _NUMBERS) and not is_plain(x, np.generic) for x in leaves]
    witness = NoWitness(f"what {what} makes of {name_of(f)} is for all values of its arguments")
    traced, _ = trace_flat(f, types, call, witness, weak, shared=False, rolls=False)
    program, captured = with_stacked_captures(traced.program, len(leaves), traced.captured, is_compiled=True)
    program = side_by_side(for_compiler(program))
    described = _describe(what, f, "the argument", tree.unflatten(structure, list(range(len(leaves)))))
    arguments = Signature(described, _leaves(tree.paths(args), types, batched))
    results = _results(what, f, traced, program, batched)
    return Portable(name_of(f), program, [*map(_own, captured)], _names(captured), arguments, results, batched)


def _type(what: str, f: Any, args: tuple[Any, ...], index: int, x: Any) -> ArrayType:
    if isinstance(x, Eager):
        raise TypeError(
            f"{what} takes arrays, but argument {tree.paths(args)[index]} of {name_of(f)} is a tensor; pass its array, "
            f"x.detach().numpy(){at_line(user_line())}"
        )
    try:
        return type_of(x)
    except TypeError:
        raise TypeError(
            f"{what} takes arrays, but argument {tree.paths(args)[index]} of {name_of(f)} is {type_name(x)}; close "
            f"over it, as in lambda x: {name_of(f)}(x, option){at_line(user_line())}"
        ) from None


def _batched(what: str, args: tuple[Any, ...], batch: Any) -> tuple[bool, ...]:
    """Whether there is a batch axis, for each array of the arguments."""
    given = () if batch is None else tuple(batch) if isinstance(batch, tuple | list) else (batch,)
    for position in given:
        if type(position) is not int or not -len(args) <= position < len(args):
            raise ValueError(
                f"batch of {what} says which arguments have a batch axis: a position or several, from 0 to "
                f"{len(args) - 1}; it is {batch!r}{at_line(user_line())}"
            )
    positions = {position % len(args) for position in given}
    return tuple(i in positions for i, arg in enumerate(args) for _ in tree.flatten(arg)[0])


def _leaves(paths: Sequence[str], types: Sequence[ArrayType], batched: Sequence[bool]) -> tuple[Leaf, ...]:
    return tuple(
        Leaf(path, (*(["batch"] if b else []), *t.shape), t.dtype)
        for path, t, b in zip(paths, types, batched, strict=True)
    )


def _describe(what: str, f: Any, part: str, containers: Any) -> Any:
    try:
        return describe(containers, part)
    except BadCall as error:
        raise TypeError(
            f"{what} of {name_of(f)}: {error}, which nothing but its own code can make; use tuples, lists, dicts "
            f"and NamedTuples of arrays{at_line(user_line())}"
        ) from None


def _results(what: str, f: Any, traced: Traced, program: Program, batched: Sequence[bool]) -> Signature:
    containers = tree.unflatten(traced.structure, list(range(len(program.outputs))))
    described = _describe(what, f, "the result", containers)
    has_batch = [any(batched)] * len(program.outputs)
    return Signature(described, _leaves(tree.paths(containers), program.out_types, has_batch))


def _own(captured: Any) -> np.ndarray[Any, Any]:
    """A captured value as an array of its own, in the byte order of this machine."""
    x = np.asarray(concrete(captured))
    return np.array(x, x.dtype.newbyteorder("="), order="C")


def _names(captured: Sequence[Any]) -> list[str]:
    """A name for each captured value."""
    names: list[str] = []
    for i, x in enumerate(captured):
        path = x.path if isinstance(x, ArrayCell) else ""
        names.append(path if path and path not in names else f"constant_{i}")
    return names


def _stored(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of numbers that every reader of the file format knows."""
    if x.dtype.kind == "c":
        return np.stack([x.real, x.imag], axis=-1)
    return x if x.dtype.kind in "biuf" else x.view(f"u{x.dtype.itemsize}")


def _read(x: Any, dtype: np.dtype[Any]) -> Any:
    """The JAX array of a dtype that is stored as `x`."""
    from jax import lax

    if dtype.kind == "c":
        return lax.complex(x[..., 0], x[..., 1])
    return x if x.dtype == dtype else lax.bitcast_convert_type(x, dtype)


@uninterrupted
def lowered(what: str, taken: Portable, platforms: tuple[str, ...]) -> Any:
    """JAX's `Exported` object of a function for these platforms."""
    about_to_run()
    try:
        found = _lowered(taken, platforms)
    except Exception as error:
        raise _not_lowered(what, taken, platforms, error) from error
    if found.nr_devices != 1:
        raise NotImplementedError(
            f"{what} of {taken.name}: it is divided over {found.nr_devices} devices, which may not be there where it "
            f"is loaded; leave out ft.shard and ft.use_mesh{at_line(user_line())}"
        )
    return found


def _lowered(taken: Portable, platforms: tuple[str, ...]) -> Any:
    import jax
    import jax.export

    (batch,) = jax.export.symbolic_shape("batch")
    function = taken.function()
    function.__name__ = function.__qualname__ = "".join(c if c.isalnum() else "_" for c in taken.name)
    with jax.enable_x64(True), exporting(platforms), _without_paths():
        constants = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in taken.stored()]
        arrays = [
            jax.ShapeDtypeStruct(tuple(batch if n == "batch" else n for n in leaf.shape), leaf.dtype)
            for leaf in taken.arguments.leaves
        ]
        return jax.export.export(jax.jit(function), platforms=platforms)(constants, arrays)


@contextmanager
def _without_paths() -> Iterator[None]:
    """Lower without the paths of this machine's source files, which are not for whoever gets the program."""
    import jax

    config: Any = jax.config
    with _setting:
        before = config.jax_traceback_in_locations_limit
        config.update("jax_traceback_in_locations_limit", 0)
        try:
            yield
        finally:
            config.update("jax_traceback_in_locations_limit", before)


def _not_lowered(what: str, taken: Portable, platforms: tuple[str, ...], error: Exception) -> NotImplementedError:
    """The error to raise, which says on which platforms a program cannot run, and why."""
    errors = {p: e for p in platforms if (e := _error_for(taken, p)) is not None}
    where = " and ".join(errors or platforms)
    first = next(iter(errors.values()), error)
    others = tuple(p for p in platforms if p not in errors)
    advice = f"; write platforms={others!r}" if errors and others else ""
    if isinstance(first, NeedsHost):
        return needs_host(f"{what} of {taken.name} for {where}", first, advice)
    why = f"JAX cannot lower it ({type(first).__name__}: {(str(first).strip() or '-').splitlines()[0]}){advice}"
    return NotImplementedError(f"{what} of {taken.name} for {where}: {why}{at_line(user_line())}")


def needs_host(what: str, error: NeedsHost, advice: str = "") -> NotImplementedError:
    """The error for a program that calls Python code, by the name of the function and the user's line."""
    return NotImplementedError(
        f"{what}: {error.eqn.primitive.name} is computed by Python code, which is not there where the program will "
        f"run{advice}{at_line(error.eqn.line or user_line())}"
    )


def _error_for(taken: Portable, platform: str) -> Exception | None:
    try:
        _lowered(taken, (platform,))
    except Exception as error:
        return error
    return None
