"""nn.jit: a function of modules -> compiled programs, which read and write the cells of the modules.

What a call costs beside the compiled program is one look at the structure epoch and one list of the cells' arrays; only
cells that the function changes come back as results.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from ..api import anomaly
from ..api.call import name_of, named
from ..api.jit import apply_to_eager
from ..api.paths import Path, Paths, native, new_path, run_known, run_path
from ..api.progress import close_bars_of
from ..api.signatures import Signatures, leaf_key
from ..base.interrupts import uninterrupted
from ..base.source import at_line, user_line
from ..core import tree
from ..core.trace import current_builder
from ..core.types import type_of
from ..ops.host import in_host_call
from ..xla import about_to_run, is_jax, to_numpy
from . import epoch
from .array_cell import deleted_error
from .calls import call_filled, read_cells, settled, write_cells
from .cells import Parameter
from .filling import in_turn
from .graph import Graph, fitted
from .module import Module
from .roots import Place, graph_of_roots, in_places, modules_in, with_places, without_modules
from .traces import Traces, require_unchanged


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Compile a function that takes modules, such as a training step, by XLA.

    The function may change parameters, buffers and streams of random numbers of the modules that it is given; they hold
    the new arrays afterwards, on the device.  It is traced once for each structure of the modules (in training and in
    evaluation) and for each combination of shapes, dtypes and static arguments.

    Args:
        f: the function, or a module, whose forward code is compiled.  Without it, a decorator is returned.
        static_argnums: positions of arguments that are no arrays and no modules; they must be hashable.
        static_argnames: the same by name.
        donate_argnums: positions of modules and JAX arrays whose memory the results may take.  Of a module, the arrays
            in cells that the function changes are overwritten, so nobody else may hold them.  Nothing is where the
            function branches on traced values, or calls Python code on the host, which may raise.

    Returns:
        A function of the same arguments.  Its results are NumPy arrays, or JAX arrays if an argument is one.

    Raises:
        TypeError: an argument is neither an array, nor a module, nor static.
        RuntimeError: the function uses a cell whose module it was not given, or an array that was donated before.

    Warns:
        RuntimeWarning: the function is traced for the third time and more; the message says what has changed.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> @nn.jit
        ... def double(model):
        ...     model.weight.value = 2 * model.weight
        >>> model = nn.Linear(2, 2)
        >>> before = model.weight.numpy().copy()
        >>> double(model)
        >>> bool(np.all(model.weight == 2 * before))
        True
    """
    if f is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums
        )
    if not callable(f) or (isinstance(f, type) and issubclass(f, Module)):
        given = f"the class {f.__name__}; make a module of it: {f.__name__}(...)" if isinstance(f, type) else repr(f)
        raise TypeError(f"nn.jit takes a function or a module, not {given}{at_line(user_line())}")
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    if not isinstance(f, Module):
        return _Jitted(f, static_argnums, static_argnames, donated)
    static = (static_argnums,) if isinstance(static_argnums, int) else static_argnums

    @functools.wraps(type(f).forward)
    def call(module: Module, *args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    call.__name__ = type(f).__name__
    behind_module = [[i + 1 if i >= 0 else i for i in positions] for positions in (static, donated)]
    return functools.partial(_Jitted(call, behind_module[0], static_argnames, tuple(behind_module[1])), f)


class _Jitted:
    """One function, with the programs that were compiled for it."""

    def __init__(
        self, f: Callable[..., Any], static_argnums: Any, static_argnames: Any, donated: tuple[int, ...]
    ) -> None:
        functools.update_wrapper(self, f)
        named(self, f, "jit")
        self._f = f
        self._donated = donated
        self._signatures = Signatures(f, static_argnums, static_argnames)
        self._cache: dict[Any, Paths] = {}
        self._numbers: dict[Any, int] = {}
        self._numbering = threading.Lock()
        # What graphs, which belong to their modules, know this function by: neither keeps the other one alive.
        self._name = object()
        self._traces = Traces(f)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_builder() is not None:
            return self._f(*args, **kwargs)
        about_to_run()
        call = self._quick_call(args) if not kwargs else None
        if call is None:
            call = self._any_call(args, kwargs)
        traced: _Traced | None = None
        while True:
            graph = graph_of_roots(call.modules)
            paths = self._paths(graph, call)
            try:
                locks = graph.transactions()
                if len(locks) == 1 and not in_host_call():
                    # The usual case, without detours.
                    with locks[0]:
                        found = self._step(graph, call, paths, traced)
                else:
                    found = in_turn(locks, self._step, graph, call, paths, traced)
                if found.__class__ is _Result:
                    break
                if isinstance(found, list):
                    traced = self._trace(graph, call, paths, found)
            except BaseException as error:
                for known in paths.paths:
                    close_bars_of(known.compiled.program, is_compiled=True)
                explained = _explained(error, graph)
                if explained is error:
                    raise
                raise explained from None
        outs, note = found.outs, found.path.note
        if not note.on_device and paths.eager is None:
            outs = [to_numpy(x) for x in outs]
            close_bars_of(found.path.compiled.program, is_compiled=True)
        return note.put_together(outs, graph)

    def _paths(self, graph: Graph, call: _Call) -> Paths:
        """The programs for the structure of the modules and the other arguments."""
        key = self._number(graph), call.signature
        try:
            paths = self._cache.get(key)
        except TypeError:
            raise self._signatures.unhashable(call.how) from None
        if paths is None:
            self._traces.note(graph, call.signature, call.leaves)
            paths = self._cache.setdefault(key, Paths([*read_cells(graph.cells), *call.leaves]))
        return paths

    def _trace(self, graph: Graph, call: _Call, paths: Paths, inputs: list[Any]) -> _Traced | None:
        """Trace and enter a path for these inputs; None if another thread has made them useless in the meantime."""
        try:
            path = self._compile(graph, call, list(map(native, inputs)))
        except (RuntimeError, ValueError):
            if all(map(is_, inputs, read_cells(graph.cells))):
                raise
            if not any([is_jax(x) and x.is_deleted() for x in inputs]):
                raise
            return None
        return _Traced(inputs, paths.add(path, self._f))

    def _step(self, graph: Graph, call: _Call, paths: Paths, traced: _Traced | None) -> _Result | list[Any] | None:
        """Read the cells, run, and write what has changed, while nobody else does with these cells.

        Returns:
            The result.  A list of the inputs if no path fits them and the function is to be traced with them.  None if
            the modules have got another structure since the graph was made.
        """
        # Other threads may make modules all the time, which is no reason to begin anew.
        if graph.epoch != epoch.now() and not graph.is_same(graph_of_roots(call.modules)):
            return None
        cells = graph.cells
        inputs = [*read_cells(cells), *call.leaves]
        if paths.eager is not None:
            inputs[: len(cells)] = map(_as_eager, cells)
            results, path = apply_to_eager(paths, self._f, inputs, lambda arrays: self._compile(graph, call, arrays))
            note: _Note = path.note
            _put_in(cells, note.places, results[note.count :])
            return _Result(results[: note.count], path)
        # Others may use the modules while the function is traced, and change what they hold.
        new = traced.path if traced is not None and all(map(is_, inputs, traced.inputs)) else None
        given = list(map(native, inputs)) if paths.swaps_bytes else inputs
        if self._donated and anomaly.is_anomaly_enabled():
            # What turns out not to be finite is computed once more, from the same arrays.
            given = [np.array(x) if is_jax(x) else x for x in given]
        # What is donated is gone when the call returns, and the cells still hold it.
        run = self._run_uninterrupted if self._donated else self._run
        result = run(graph, call, paths, given, new)
        return inputs if result is None else result

    def _run(self, graph: Graph, call: _Call, paths: Paths, given: list[Any], new: Path | None) -> _Result | None:
        """Run a new path, or the known one that fits, and write what has changed; None if no path fits."""
        found = run_known(paths, self._f, given) if new is None else (run_path(new, given), new)
        if found is None:
            return None
        results, path = found
        note: _Note = path.note
        if anomaly.is_anomaly_enabled():
            self._check(graph, call, path, given, results)
        outs = results[: note.count]
        write_cells(graph.cells, note.places, results[note.count :])
        return _Result(outs, path)

    _run_uninterrupted = uninterrupted(_run)

    def _check(self, graph: Graph, call: _Call, path: Path, inputs: list[Any], results: list[Any]) -> None:
        """Raise AnomalyError if results are not finite."""
        anomaly.check(
            path.compiled.program,
            [*inputs, *path.constants],
            results,
            names=lambda: [*graph.paths, *(f"argument {i}" for i in range(len(call.leaves)))],
            out_names=lambda: path.note.names(graph, self._f),
        )

    def _quick_call(self, args: tuple[Any, ...]) -> _Call | None:
        """The usual call, of modules and arrays without containers; None for another one."""
        if self._signatures.has_statics:
            return None
        modules, signature, leaves = [], [], []
        for x in args:
            key = leaf_key(x)
            if key is not None:
                signature.append(key)
                leaves.append(x)
            elif isinstance(x, Module):
                modules.append(x)
                signature.append(None)
            else:
                return None
        return _Call(modules, tuple(signature), leaves, None, args)

    def _any_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        modules: list[Module] = []
        plain, plain_kwargs = with_places((args, kwargs), modules)
        signature, leaves, how = self._signatures.prepare(plain, plain_kwargs)
        return _Call(modules, signature, leaves, how, plain)

    def _number(self, graph: Graph) -> int:
        """The number of the structure of a graph, which it has in common with others."""
        number = graph.numbers.get(self._name)
        if number is None:
            with self._numbering:
                number = graph.numbers[self._name] = self._numbers.setdefault(graph.key, len(self._numbers))
        return number

    def _compile(self, graph: Graph, given: _Call, inputs: list[Any]) -> Path:
        note = _Note(any(map(is_jax, given.leaves)))

        def positional(values: list[Any]) -> Any:
            remaining = iter(values)
            return self._f(*(x if isinstance(x, Module) else next(remaining) for x in given.args))

        def function(*args: Any, **kwargs: Any) -> Any:
            new_args, new_kwargs = in_places((args, kwargs), given.modules)
            return self._f(*new_args, **new_kwargs)

        rebuild = positional if given.how is None else self._signatures.rebuild(given.how, function)

        def call(tracers: list[Any]) -> Any:
            count = len(graph.cells)
            # What a cell or a module in the result holds is what it holds before the call ends.
            (out, structure), changed = call_filled(
                graph, dict(enumerate(tracers[:count])), lambda: note.taken_apart(rebuild(tracers[count:]), graph)
            )
            if require_unchanged(graph, self._f):
                self._traces.forget(graph)
            note.places = list(changed)
            return tree.unflatten(structure, out), [
                fitted(graph, i, x, type_of(tracers[i])) for i, x in changed.items()
            ]

        def donated() -> tuple[int, ...]:
            positions = [i % len(given.args) for i in self._donated if -len(given.args) <= i < len(given.args)]
            whole = in_places(given.args, given.modules)
            ids = {id(cell) for i in positions for m in modules_in(whole[i]) for _, cell in m.named_cells()}
            of_cells = [i for i in note.places if id(graph.cells[i]) in ids]
            plain = with_places(given.args, [])
            return (*of_cells, *(len(graph.cells) + i for i in self._signatures.donated(self._donated, plain)))

        return new_path(self._f, inputs, call, donated if self._donated else None, note)


class _Call(NamedTuple):
    """A call, taken apart.

    Attributes:
        modules: the modules among the arguments.
        signature: what the program depends on in the other arguments.
        leaves: the arrays.
        how: how to call the function with others in their place; None if the arguments are modules and arrays.
        args: the positional arguments, with places for modules unless `how` is None.
    """

    modules: list[Module]
    signature: Any
    leaves: list[Any]
    how: Any
    args: tuple[Any, ...]


class _Traced(NamedTuple):
    """A path that has been traced, and the inputs that it was traced with."""

    inputs: list[Any]
    path: Path


class _Result(NamedTuple):
    """The arrays in the result of the function, and the path that made them."""

    outs: list[Any]
    path: Path


class _Note:
    """What a compiled path needs to know beside its program.

    Attributes:
        places: which cells it changes, in the order of the results behind those of the function.
        structure: structure of the result of the function, with places for modules that it was given.
        count: how many arrays that is.
        has_modules: whether there are any.
        on_device: whether an array among the arguments is JAX's, so that results stay JAX arrays.
    """

    places: list[int]
    structure: tree.Structure
    count: int
    has_modules: bool

    def __init__(self, on_device: bool) -> None:
        self.on_device = on_device

    def taken_apart(self, out: Any, graph: Graph) -> tuple[list[Any], tree.Structure]:
        """The arrays in the result of the function, and its structure."""
        known = {id(module): number for number, module in enumerate(graph.modules.values())}
        self.has_modules = False

        def place(module: Module) -> Any:
            number = known.get(id(module))
            if number is None:
                return module
            self.has_modules = True
            return Place(number)

        leaves, self.structure = tree.flatten(without_modules(settled(out), place))
        self.count = len(leaves)
        return leaves, self.structure

    def names(self, graph: Graph, f: Callable[..., Any]) -> list[str]:
        """What the results of the program are called."""
        numbers = [""] if self.count == 1 else [f" {i}" for i in range(self.count)]
        return [
            *(f"result{number} of {name_of(f)}" for number in numbers),
            *(f"the new value of {graph.paths[place]}" for place in self.places),
        ]

    def put_together(self, outs: list[Any], graph: Graph) -> Any:
        """The result of the function from its arrays."""
        out = tree.unflatten(self.structure, outs)
        return in_places(out, [*graph.modules.values()]) if self.has_modules else out


@uninterrupted
def _put_in(cells: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> None:
    for place, x in zip(places, values, strict=True):
        cells[place].value = x


def _as_eager(cell: Any) -> Any:
    return cell.tensor() if isinstance(cell, Parameter) and cell.requires_grad else cell.value


def _explained(error: BaseException, graph: Graph) -> BaseException:
    """The error for an array that was donated before, by the path of its cell; other errors as they are."""
    if isinstance(error, RuntimeError | ValueError) and ("deleted" in str(error) or "donated" in str(error)):
        for path, cell in zip(graph.paths, graph.cells, strict=True):
            if is_jax(cell.array) and cell.array.is_deleted():
                return deleted_error(path)
    return error
