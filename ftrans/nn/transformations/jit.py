"""nn.jit: compile a function of modules to programs that read and write the cells of the modules.

Besides running the compiled program, a call checks the structure epoch and lists the arrays of the cells; only cells
that the function changes come back as results.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, overload

import numpy as np

from ...api import anomaly
from ...api.alike import Alike
from ...api.call import check_flag, name_of
from ...api.jitted import Call, Jitted, Remembered
from ...api.paths import Path, Paths, new_path
from ...api.retraces import Facts, Traces
from ...api.signatures import leaf_key
from ...autograd.tensor import Tensor
from ...base import tree
from ...base.cell import Eager
from ...base.foreign import Said
from ...base.interrupts import uninterrupted
from ...base.source import at_line, user_line
from ...base.type_variables import Params, Result
from ...ops.host import in_host_call
from ...xla import Division, OtherTypes, UnequalArguments, about_to_run, is_deleted, is_in_trace, is_jax, is_jax_tracer
from ..cells import epoch
from ..cells.array_cell import deleted_error
from ..cells.filling import in_turn
from ..cells.kinds import Parameter
from ..modules.calls import call_filled, read_cells, settled, write_cells
from ..modules.graph import Graph
from ..modules.module import Module
from ..modules.nested import parts_of, rebuilt
from ..modules.roots import Place, graph_of_roots, in_places, modules_in, with_places, without_modules
from .traces import ModulesTraced, require_unchanged

# One trace for training and one for a last, smaller batch are what one expects.
_EXPECTED = 2


@overload
def jit(
    f: Callable[Params, Result],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    roll: bool = True,
) -> Callable[Params, Result]: ...
@overload
def jit(
    f: None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    roll: bool = True,
) -> Callable[[Callable[Params, Result]], Callable[Params, Result]]: ...
def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    roll: bool = True,
) -> Any:
    """Compile a function that takes modules, such as a training step, with XLA.

    The function can change parameters, buffers and random states of the modules among its arguments; afterwards these
    hold the new arrays, on the device.  It is traced once for each structure of the modules (training and evaluation
    mode differ) and for each combination of shapes, dtypes and static arguments.

    Args:
        f: the function, or a module, whose forward code is compiled.  If omitted, a decorator is returned.
        static_argnums: positions of arguments that are neither arrays nor modules; they must be hashable.
        static_argnames: the same by name.
        donate_argnums: positions of modules and JAX arrays whose memory the results can reuse.  For a module, arrays in
            the cells that the function changes are overwritten, so nothing else must use them.  Nothing is donated if
            the function branches on traced values or calls Python code on the host, because both can raise errors.
        roll: whether to compile Python loops as loops; False compiles every step.

    Returns:
        A function of the same arguments with the same results, as NumPy arrays, or JAX arrays if an argument is one.
        With a Tensor among the arguments, results are Tensors, and `backward()` reaches the parameters.  If the
        function itself changes parameters, as a training step does, the results have no graph.

    Raises:
        TypeError: an argument of the function is neither an array, nor a module, nor static; `roll` is not a bool.
        RuntimeError: the function uses a cell of a module that is not among its arguments, or an array that was donated
            in an earlier call.

    Warns:
        RuntimeWarning: the function is traced for the third time or more; the message says what has changed.

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
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            roll=roll,
        )
    if not callable(f) or (isinstance(f, type) and issubclass(f, Module)):
        given = f"the class {f.__name__}; create a module first: {f.__name__}(...)" if isinstance(f, type) else repr(f)
        raise TypeError(f"nn.jit takes a function or a module, not {given}{at_line(user_line())}")
    check_flag(roll, "nn.jit", "roll")
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    if not isinstance(f, Module):
        return _Jitted(f, static_argnums, static_argnames, donated, bool(roll)).function()
    static = (static_argnums,) if isinstance(static_argnums, int) else static_argnums

    @functools.wraps(type(f).forward)
    def call(module: Module, *args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    call.__name__ = type(f).__name__
    behind_module = [[i + 1 if i >= 0 else i for i in positions] for positions in (static, donated)]
    jitted = _Jitted(call, behind_module[0], static_argnames, tuple(behind_module[1]), bool(roll))
    return functools.partial(jitted.function(), f)


class _Call(Call):
    """A call, with the modules among its arguments.

    `args` and `kwargs` hold placeholders for the modules, unless `how` is None: then they are modules and arrays.

    Attributes:
        modules: the modules.
        graph: their graph.
        signature: what the program depends on in the other arguments.
        is_in_jax: whether cells hold what JAX traces.
        gives_tensors: whether the arrays were Tensors, so that results become such.
    """

    __slots__ = ("gives_tensors", "graph", "is_in_jax", "modules", "signature")

    graph: Graph
    is_in_jax: bool

    def __init__(
        self,
        modules: list[Module],
        signature: Any,
        leaves: list[Any],
        how: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(None, leaves, how, args, kwargs or {})
        self.modules = modules
        self.signature = signature
        self.gives_tensors = False


class _Jitted(Jitted):
    """A compiled function of modules: arrays in their cells are further inputs, and changed cells further results."""

    def __init__(
        self, f: Callable[..., Any], static_argnums: Any, static_argnames: Any, donated: tuple[int, ...], rolls: bool
    ) -> None:
        super().__init__(f, static_argnums, static_argnames, donated, rolls)
        self._numbers: dict[Any, int] = {}
        self._numbering = threading.Lock()
        # Graphs belong to their modules and refer to this function by a key, so that neither keeps the other alive.
        self._name = object()
        self.traces = Traces(f, "nn.jit", _EXPECTED)
        # For the keys of calls with Tensors: whether the function changes parameters.
        self._trains: dict[Any, bool] = {}

    def call_inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.f(*args, **kwargs)

    def take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        about_to_run()
        call = self._taken_apart(args, kwargs)
        tensors = [x for x in call.leaves if isinstance(x, Eager)]
        if not tensors or any([x.is_active() for x in tensors]):
            return call
        with_arrays = self._taken_apart(*_with_arrays((args, kwargs)))
        trains = self._trains.get(call.key)
        if trains is None:
            trains = self._note_training(call, with_arrays)
        if not trains:
            return call
        with_arrays.gives_tensors = True
        return with_arrays

    def _note_training(self, call: _Call, with_arrays: _Call) -> bool:
        """Note whether calls like one with Tensors change parameters; the program is one for Tensors and arrays."""
        with_arrays.inputs = [*read_cells(with_arrays.graph.cells), *with_arrays.leaves]
        try:
            path = self.trace(with_arrays, self._paths(with_arrays))
        except Exception as error:
            explained = self.explained(error, with_arrays)
            if explained is error:
                raise
            raise explained from None
        if path is None:
            return False
        changed = [with_arrays.graph.cells[place] for place in path.note.places]
        trains = self._trains[call.key] = any([isinstance(x, Parameter) and x.requires_grad for x in changed])
        if not trains:
            self._paths(call).add(path)
        return trains

    def _taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        call = self._quick_call(args) if not kwargs else None
        if call is None:
            modules: list[Module] = []
            plain, plain_kwargs = with_places((args, kwargs), modules)
            signature, leaves, how = self.signatures.prepare(plain, plain_kwargs)
            call = _Call(modules, signature, leaves, how, plain, plain_kwargs)
        return self._with_graph(call)

    def remember(self, call: _Call, paths: Paths, args: tuple[Any, ...]) -> None:
        if not call.gives_tensors:
            super().remember(call, paths, args)

    def alike(self, call: _Call, args: tuple[Any, ...]) -> Alike | None:
        return None if call.is_in_jax else Alike.to(args, call.leaves, call.modules, Module)

    def repeat(self, known: Remembered, leaves: Sequence[Any], args: tuple[Any, ...]) -> Any:
        about_to_run()
        if is_in_trace():
            # Cells may hold what JAX traces, whatever the arguments are.
            raise OtherTypes
        modules, arrays = known.alike.modules(leaves), known.alike.arrays(leaves)
        graph = graph_of_roots(modules)
        if graph.numbers.get(self._name) != known.key[0]:
            raise OtherTypes
        path, locks = known.path, graph.transactions()
        if path is None or len(locks) != 1 or self.donated or in_host_call() or anomaly.is_anomaly_enabled():
            return self.result(self._call_like(known, modules, arrays, graph, args), known.paths, traces=False)
        note: _Note = path.note
        try:
            with locks[0]:
                if graph.epoch != epoch.now():
                    raise OtherTypes
                inputs = [*read_cells(graph.cells), *arrays, *path.constants]
                outs = path.compiled(*inputs)
                if note.places:
                    write_cells(graph.cells, note.places, outs[note.count :])
        except (RuntimeError, ValueError) as error:
            raise self.explained(error, self._call_like(known, modules, arrays, graph, args)) from None
        outs = outs[: note.count]
        return note.put_together(outs if path.on_device else path.compiled.on_host(outs, inputs), graph)

    def _call_like(
        self, known: Remembered, modules: list[Module], arrays: list[Any], graph: Graph, args: tuple[Any, ...]
    ) -> _Call:
        call = _Call(modules, known.key[1], arrays, known.how, args)
        call.graph, call.key, call.is_in_jax = graph, known.key, False
        return call

    def _quick_call(self, args: tuple[Any, ...]) -> _Call | None:
        """The common case: a call with modules and arrays only, without containers.  None for any other call."""
        if self.signatures.has_statics:
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

    def _with_graph(self, call: _Call) -> _Call:
        """The call with the current graph of its modules."""
        graph = call.graph = graph_of_roots(call.modules)
        # A program whose cells hold what JAX traces becomes an operation of JAX.
        call.is_in_jax = is_in_trace() and any(map(is_jax_tracer, read_cells(graph.cells)))
        call.key = self._number(graph), call.signature, call.is_in_jax
        return call

    def _number(self, graph: Graph) -> int:
        """The number of a graph's structure; graphs of equal structure share it."""
        number = graph.numbers.get(self._name)
        if number is None:
            with self._numbering:
                number = graph.numbers[self._name] = self._numbers.setdefault(graph.key, len(self._numbers))
        return number

    def new_paths(self, call: _Call) -> Paths:
        return Paths([*read_cells(call.graph.cells), *call.leaves])

    def attempt(self, call: _Call, paths: Paths, new: Path | None) -> tuple[list[Any], Path] | None:
        """Read the cells, run, and write the changed ones back, holding the locks of these cells."""
        locks = call.graph.transactions()
        if len(locks) == 1 and not in_host_call():
            # The common case, without detours.
            with locks[0]:
                return self._step(call, paths, new)
        return in_turn(locks, self._step, call, paths, new)

    def _step(self, call: _Call, paths: Paths, new: Path | None) -> tuple[list[Any], Path] | None:
        graph, before = call.graph, call.inputs
        # Other threads may create modules at any time, which is no reason to start over.
        if graph.epoch != epoch.now() and not graph.is_same(graph_of_roots(call.modules)):
            self._with_graph(call)
            call.inputs = None
            return None
        inputs = call.inputs = [*read_cells(graph.cells), *call.leaves]
        if paths.eager is not None:
            return self._run_and_write(call, paths, [*map(_as_eager, graph.cells), *call.leaves], None)
        # Other threads may use and change the modules while the function is traced.
        if new is not None and not (before and all(map(is_, inputs, before))):
            new = None
        if not self.donated:
            return self._run_and_write(call, paths, inputs, new)
        if anomaly.is_anomaly_enabled():
            # Results that are not finite are computed once more, from the same arrays.
            inputs = [np.array(x) if is_jax(x) else x for x in inputs]
        # Donated arrays are gone when the call returns, and the cells still hold them.
        return self._run_and_write_uninterrupted(call, paths, inputs, new)

    def _run_and_write(
        self, call: _Call, paths: Paths, inputs: list[Any], new: Path | None
    ) -> tuple[list[Any], Path] | None:
        found = self.run(call, paths, inputs, new)
        if found is None:
            return None
        outs, path = found
        note: _Note = path.note
        if paths.eager is not None:
            _put_in(call.graph.cells, note.places, outs[note.count :])
            return outs[: note.count], path
        if anomaly.is_anomaly_enabled() and not any(map(is_jax_tracer, inputs)):
            self._check(call, path, inputs, outs)
        write_cells(call.graph.cells, note.places, outs[note.count :])
        return outs[: note.count], path

    _run_and_write_uninterrupted = uninterrupted(_run_and_write)

    def _check(self, call: _Call, path: Path, inputs: list[Any], results: list[Any]) -> None:
        """Raise AnomalyError if results are not finite."""
        anomaly.check(
            path.compiled.program,
            [*inputs, *path.constants],
            results,
            names=lambda: [*call.graph.paths, *(f"argument {i}" for i in range(len(call.leaves)))],
            out_names=lambda: path.note.names(call.graph, self.f),
        )

    def trace(self, call: Any, paths: Paths) -> Path | None:
        inputs = call.inputs
        try:
            return super().trace(call, paths)
        except (RuntimeError, ValueError):
            if all(map(is_, inputs, read_cells(call.graph.cells))):
                raise
            if not any(map(is_deleted, inputs)):
                raise
            # Another thread has donated them meanwhile.
            return None

    def note(self, call: _Call, before: Sequence[Path], path: Path, seconds: float) -> None:
        # Modules that have kept constants are traced once more.  What JAX traces is a program of its own, besides.
        if not path.note.has_kept_constants and not is_in_trace():
            super().note(call, before, path, seconds)

    def facts(self, call: _Call) -> Facts:
        return super().facts(call)._replace(modules=ModulesTraced(call.graph))

    def argument_names(self, call: _Call) -> list[str]:
        if call.how is None:
            return [f"argument {i}" for i, x in enumerate(call.args) if not isinstance(x, Module)]
        return super().argument_names(call)

    def put_together(self, call: _Call, path: Path, outs: list[Any]) -> Any:
        if call.gives_tensors:
            outs = [Tensor.of(np.asarray(x)) for x in outs]
        return path.note.put_together(outs, call.graph)

    def compile(self, call: _Call, inputs: list[Any]) -> Path:
        graph, note = call.graph, _Note()

        def positional(values: list[Any]) -> Any:
            remaining = iter(values)
            return self.f(*(x if isinstance(x, Module) else next(remaining) for x in call.args))

        def function(*args: Any, **kwargs: Any) -> Any:
            new_args, new_kwargs = in_places((args, kwargs), call.modules)
            return self.f(*new_args, **new_kwargs)

        rebuild = positional if call.how is None else self.signatures.rebuild(call.how, function)

        def pure(tracers: list[Any]) -> Any:
            count = len(graph.cells)
            # A cell or module in the result is returned with what it holds before the call ends.
            held = dict(enumerate(tracers[:count]))
            (out, structure), changed = call_filled(
                graph, held, lambda: note.taken_apart(rebuild(tracers[count:]), graph), keep_types=True
            )
            note.has_kept_constants = require_unchanged(graph, self.f)
            note.places = list(changed)
            return tree.unflatten(structure, out), [*changed.values()]

        def donated() -> tuple[int, ...]:
            positions = [i % len(call.args) for i in self.donated if -len(call.args) <= i < len(call.args)]
            whole = in_places(call.args, call.modules)
            ids = {id(cell) for i in positions for m in modules_in(whole[i]) for _, cell in m.named_cells()}
            of_cells = [i for i in note.places if id(graph.cells[i]) in ids]
            plain = with_places(call.args, [])
            return (*of_cells, *(len(graph.cells) + i for i in self.signatures.donated(self.donated, plain)))

        def divided(*_: Any) -> Division:
            # What a step changes stays where it is, so that the next step finds what this one was compiled for.
            return Division(results=[*[None] * note.count, *(graph.cells[i].sharding for i in note.places)])

        path = new_path(
            self.f,
            inputs,
            pure,
            donated if self.donated else None,
            note,
            rolls=self.rolls,
            divided=divided,
            methods=[module.forward for module in graph.modules.values() if hasattr(module, "forward")],
        )
        # Cells hold JAX arrays after the first step, which says nothing about the kind of result that the user wants.
        return path._replace(on_device=any(map(is_jax, call.leaves)) or any(map(is_jax_tracer, inputs)))

    def explained(self, error: BaseException, call: _Call) -> BaseException:
        """The error for an array donated earlier, or unequal in processes, naming its cell; other errors unchanged."""
        if isinstance(error, UnequalArguments):
            arguments = [f"array {i} of the arguments" for i in range(len(call.leaves))]
            names = dict(enumerate([*call.graph.paths, *arguments]))
            return ValueError(error.about([names.get(i, "a captured array") for i in error.places]))
        if isinstance(error, RuntimeError | ValueError) and Said.DELETED in str(error):
            for path, cell in zip(call.graph.paths, call.graph.cells, strict=True):
                if is_deleted(cell.array):
                    return deleted_error(path)
        return error


class _Note:
    """What a compiled path needs besides its program.

    Attributes:
        places: the cells that it changes, in the order of the results that follow those of the function.
        structure: structure of the function's result, with placeholders for modules that it was given.
        count: the number of arrays in the result.
        has_modules: whether the result contains modules.
        has_kept_constants: whether modules have kept constants while it was traced.
    """

    places: list[int]
    structure: tree.Structure
    count: int
    has_modules: bool
    has_kept_constants: bool

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
        """Names of the program's results, for messages."""
        numbers = [""] if self.count == 1 else [f" {i}" for i in range(self.count)]
        return [
            *(f"result{number} of {name_of(f)}" for number in numbers),
            *(f"the new value of {graph.paths[place]}" for place in self.places),
        ]

    def put_together(self, outs: list[Any], graph: Graph) -> Any:
        """The result of the function from its arrays."""
        out = tree.unflatten(self.structure, outs)
        return in_places(out, [*graph.modules.values()]) if self.has_modules else out


def _with_arrays(x: Any) -> Any:
    """Arguments with the arrays of Tensors in their place."""
    if isinstance(x, Eager):
        return np.asarray(x.concrete())
    return x if isinstance(x, Module) or parts_of(x) is None else rebuilt(x, _with_arrays)


@uninterrupted
def _put_in(cells: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> None:
    for place, x in zip(places, values, strict=True):
        cells[place].value = x


def _as_eager(cell: Any) -> Any:
    return cell.tensor() if isinstance(cell, Parameter) and cell.requires_grad else cell.value
