"""Jitted: a function and its compiled programs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..base import tree
from ..base.cell import Eager, concrete
from ..base.narrow_products import product_dtype
from ..base.progress import working
from ..base.tracebacks import leave_out_frames
from ..control.call import call as call_primitive
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType, type_of
from ..xla import Division, OtherTypes, is_jax_tracer
from ..xla.meshes import current_mesh
from . import anomaly
from .alike import Alike
from .call import name_of, named, trace_flat
from .paths import Path, Paths, native, new_path, run_compiled, run_known, run_path, without_collector
from .retraces import Facts, Traces
from .rolling import rolling
from .sharding import Shardings, divided
from .signatures import Signatures, shown_type

_NUMBERS = (float, int, bool, complex)
# How often a function remembers a call for others like it: one that is called in turn in many ways stops to.
_MOST_REMEMBERED = 8


class Call:
    """One call of a jitted function, with flattened arguments.

    Attributes:
        key: the signature, on which compiled programs depend.
        leaves: the arrays among the arguments.
        how: calls the function with other arrays in their place.
        args: the positional arguments.
        kwargs: the keyword arguments.
        inputs: the inputs of its program; None if they have to be determined again.
    """

    __slots__ = ("args", "how", "inputs", "key", "kwargs", "leaves")

    def __init__(
        self, key: Any, leaves: Sequence[Any], how: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.key = key
        self.leaves = leaves
        self.inputs: Sequence[Any] | None = leaves
        self.how = how
        self.args = args
        self.kwargs = kwargs


class Remembered(NamedTuple):
    """A call, for others that are like it, which need not be looked up.

    Attributes:
        alike: the calls like it.
        key: its signature.
        how: how it called the function.
        paths: the paths of its signature.
        path: the only one of them, if it assumes nothing.
        around: what is set around it.
    """

    alike: Alike
    key: Any
    how: Any
    paths: Paths
    path: Path | None
    around: tuple[Any, str | None]


def _around() -> tuple[Any, str | None]:
    """What is set around a call and decides on the program: the mesh in use, and the dtype of products."""
    return current_mesh(), product_dtype()


class Jitted:
    """A function and its compiled programs; those of one signature are its `Paths`.

    `ft.jit` returns the call of one.  For arguments other than arrays, a subclass defines how a call is flattened
    (`take_apart`, `new_paths`), its inputs and results (`attempt`, `put_together`), and how the function is traced
    (`compile`).

    Args:
        f: the function.
        static_argnums: positions of arguments that are part of the signature.
        static_argnames: the same by name.
        donated: positions of arguments whose memory the results may reuse.
        rolls: whether loops of Python are compiled as loops.
        tunes: whether the fastest of several forms of a program is kept.
        shardings: how arguments and results are divided over devices, if the user says so.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        donated: tuple[int, ...],
        rolls: bool,
        tunes: bool = False,
        shardings: Shardings | None = None,
    ) -> None:
        self.f = f
        self.rolls = rolls
        self.tunes = tunes
        self.donated = donated
        self.shardings = shardings
        self.signatures = Signatures(f, static_argnums, static_argnames)
        self.traces = Traces(f, "jit")
        self._cache: dict[Any, Paths] = {}
        self._remembered: Remembered | None = None
        self._still_remembers = 0 if self.signatures.has_statics else _MOST_REMEMBERED

    def function(self) -> Callable[..., Any]:
        """The compiled function, as users call it."""
        call = self.call

        @functools.wraps(self.f)
        def jit_of_f(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(args, kwargs)
            except BaseException as error:
                leave_out_frames(error)
                raise

        return named(jit_of_f, self.f, "jit")

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the function."""
        if current_builder() is not None:
            return self.call_inside(args, kwargs)
        known = self._remembered
        if known is not None and not kwargs and known.around == _around():
            leaves = known.alike.leaves(args)
            if leaves is not None:
                try:
                    return self.repeat(known, leaves, args)
                except OtherTypes:
                    pass
        call = self.take_apart(args, kwargs)
        paths = self._paths(call)
        result = self.result(call, paths)
        if self._still_remembers and not kwargs:
            self.remember(call, paths, args)
        return result

    def result(self, call: Any, paths: Paths, traces: bool = True) -> Any:
        """The result of a call, by a path of its signature, or by a new one.

        Raises:
            OtherTypes: it takes a new path, and is not to be traced.
        """
        new: Path | None = None
        while True:
            try:
                found = self.attempt(call, paths, new)
                if found is None:
                    if not traces:
                        raise OtherTypes
                    new = self.trace(call, paths)
                    paths = self._paths(call)
                    continue
                outs, path = found
                if not path.on_device and paths.eager is None:
                    outs = path.compiled.on_host(outs, [*(call.inputs or ()), *path.constants])
                    for end in path.ends:
                        end()
                return self.put_together(call, path, outs)
            except BaseException as error:
                for used in paths.paths:
                    for end in used.ends:
                        end()
                explained = self.explained(error, call)
                if explained is error:
                    raise
                raise explained from None

    def repeat(self, known: Remembered, leaves: Sequence[Any], args: tuple[Any, ...]) -> Any:
        """The result of a call like one before.

        Raises:
            OtherTypes: its signature is another one after all, or it takes a new path.
        """
        path = known.path
        if path is None or anomaly.is_anomaly_enabled():
            return self.result(Call(known.key, leaves, known.how, args, {}), known.paths, traces=False)
        outs = path.compiled(*leaves, *path.constants)
        return path.structure.unflatten(
            outs if path.on_device else path.compiled.on_host(outs, [*leaves, *path.constants])
        )

    def remember(self, call: Any, paths: Paths, args: tuple[Any, ...]) -> None:
        """Remember a call, for others like it."""
        if paths.eager is None and not paths.swaps_bytes:
            self._still_remembers -= 1
            alike = self.alike(call, args)
            first = paths.paths[0]
            path = None if first.guards or first.strides or first.ends else first
            self._remembered = None if alike is None else Remembered(alike, call.key, call.how, paths, path, _around())

    def _paths(self, call: Call) -> Paths:
        around = _around()
        key = call.key if around == (None, None) else (around, call.key)
        try:
            paths = self._cache.get(key)
        except TypeError:
            raise self.signatures.unhashable(call.how) from None
        return self._cache.setdefault(key, self.new_paths(call)) if paths is None else paths

    def run(self, call: Call, paths: Paths, inputs: Sequence[Any], new: Path | None) -> tuple[list[Any], Path] | None:
        """The results of a call for these inputs, and the path that computed them; None if no path fits yet.

        Args:
            call: the call.
            paths: the paths of its signature.
            inputs: the inputs of the program.
            new: a path that was traced with these inputs, so that its guards hold regardless of rounding.
        """
        if paths.swaps_bytes:
            inputs = list(map(native, inputs))
        if paths.eager is not None:
            return self._apply(call, paths, inputs)
        return run_known(paths, self.f, inputs) if new is None else (run_path(new, inputs), new)

    def _apply(self, call: Call, paths: Paths, inputs: Sequence[Any]) -> tuple[list[Any], Path]:
        """The same, if some of the inputs are eager values."""
        arrays = [*map(concrete, inputs)]
        path = paths.first(arrays)
        if path is None or path.guards:
            found = run_known(paths, self.f, arrays)
            path = self._new(call, paths, arrays) if found is None else found[1]
        assert paths.eager is not None
        name = self.f.__name__ if hasattr(self.f, "__name__") else "function"
        outs = paths.eager.apply_program(path.compiled.program, [*inputs, *path.constants], run_compiled, name)
        return path.split(outs)[0], path

    def trace(self, call: Any, paths: Paths) -> Path | None:
        """A new path for the inputs of a call, or a known one with equal guards; None if the inputs are gone."""
        return None if call.inputs is None else self._new(call, paths, [*map(native, call.inputs)])

    def _new(self, call: Any, paths: Paths, inputs: list[Any]) -> Path:
        """The path of a new trace; its reason is noted."""
        before, started = paths.paths, time.perf_counter()
        with working(f"tracing {name_of(self.f)}"):
            path = self.compile(call, inputs)
        used = paths.add(path)
        if used is path:
            self.note(call, before, path, time.perf_counter() - started)
        return used

    def note(self, call: Any, before: Sequence[Path], path: Path, seconds: float) -> None:
        """Note why a new path was traced, beside those of the same signature."""
        self.traces.note(self.facts(call), before, path, seconds)

    def facts(self, call: Any) -> Facts:
        """What a trace for a call depends on."""
        mesh, products = _around()
        around = {"the mesh in use": (str(mesh), hash(mesh)), "the dtype of products": (str(products), products)}
        statics = self.signatures.shown_statics(call.how)
        names = self.argument_names(call)
        types = [(kind := shown_type(x), kind) for x in call.leaves]
        arguments = dict(zip(names, types, strict=True))
        return Facts({"argument": arguments, "static": statics, "around": around}, hash(call.key))

    def argument_names(self, call: Any) -> list[str]:
        """A name for each array among the arguments of a call."""
        return self.signatures.names(call.args, call.kwargs)

    # What calls consist of

    def call_inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result inside another trace: records one equation that holds the program."""
        _, leaves, how = self.signatures.prepare(args, kwargs)
        types = [type_of(x) for x in leaves]
        weak = [x.weak if isinstance(x, Tracer) else isinstance(x, _NUMBERS) for x in leaves]
        with rolling(self.rolls):
            traced, _ = trace_flat(self.f, types, self.signatures.rebuild(how), leaves, weak)
        division = self._division(args, kwargs, types, traced.structure, traced.program.out_types)
        if division.inputs is not None:
            leaves = [*map(divided, leaves, division.inputs)]
        outs = call_primitive(*leaves, *traced.captured, program=traced.program)
        if division.results is not None:
            outs = [*map(divided, outs, division.results)]
        return tree.unflatten(traced.structure, outs)

    def _division(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        types: Sequence[ArrayType],
        structure: tree.Structure,
        out_types: Sequence[ArrayType],
    ) -> Division:
        """How the arrays among the arguments, and the results, are divided."""
        if self.shardings is None:
            return Division()
        _, others, others_by_name = self.signatures.statics.take(args, kwargs)
        return Division(
            self.shardings.of_arguments(others, others_by_name, types), self.shardings.of_results(structure, out_types)
        )

    def take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Flatten the arguments of a call."""
        return Call(*self.signatures.prepare(args, kwargs), args, kwargs)

    def alike(self, call: Any, args: tuple[Any, ...]) -> Alike | None:
        """The calls like one with these arguments."""
        return Alike.to(args, call.leaves)

    def new_paths(self, call: Any) -> Paths:
        """Empty paths for calls with this signature."""
        return Paths(call.leaves)

    def attempt(self, call: Any, paths: Paths, new: Path | None) -> tuple[list[Any], Path] | None:
        """Run a call; None if no known path fits its inputs, so that the function has to be traced."""
        return self.run(call, paths, call.leaves, new)

    def put_together(self, call: Any, path: Path, outs: list[Any]) -> Any:
        """The result of the function from its arrays."""
        if anomaly.is_anomaly_enabled() and not any([isinstance(x, Eager) or is_jax_tracer(x) for x in outs]):
            arguments = () if call.how[1] is not None else (call.args, call.kwargs)
            inputs = [*call.leaves, *path.constants]
            anomaly.check(path.compiled.program, inputs, outs, names=lambda: _names(arguments))
        return tree.unflatten(path.structure, outs)

    def compile(self, call: Any, inputs: list[Any]) -> Path:
        """Trace and compile the function for the inputs of a call."""
        donated = (lambda: self.signatures.donated(self.donated, call.args)) if self.donated else None
        rebuilt = self.signatures.rebuild(call.how)
        types = [*map(type_of, inputs)]

        def division(structure: tree.Structure, out_types: Sequence[ArrayType]) -> Division:
            return self._division(call.args, call.kwargs, types, structure, out_types)

        if self.shardings is None:
            return new_path(self.f, inputs, rebuilt, donated, tunes=self.tunes, rolls=self.rolls)
        path = new_path(self.f, inputs, rebuilt, donated, tunes=self.tunes, rolls=self.rolls, divided=division)
        return path._replace(on_device=True)

    def explained(self, error: BaseException, call: Any) -> BaseException:
        """The exception to raise for an error: the error itself, unless there is a better message."""
        return error

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """JAX's `Lowered` object for these arguments."""
        call = self.take_apart(args, kwargs)
        path = self.compile(call, call.leaves)
        return without_collector(path.compiled.lower, *call.leaves, *path.constants)


def _names(arguments: tuple[Any, ...]) -> list[str]:
    """Names of the arrays among the arguments, for messages."""
    paths = [path for part in arguments for path in tree.paths(part)]
    named = [path[1:].replace("]", "", 1).replace("'", "", 2 * path.startswith("['")) for path in paths]
    return [f"argument {name}" for name in named]
