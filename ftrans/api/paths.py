"""Paths: the compiled programs of a function for one signature, one for each way that Python control flow takes.

While the function is traced, a Python branch on a traced value is decided by the actual arguments.  The compiled
program also returns the predicates that were assumed (its *guards*).  A call checks them; on a miss the path with
the other outcome is taken, or traced and compiled.
"""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from ..base import tree
from ..base.cell import Eager
from ..base.contexts import in_own_context
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..control.rolling.side_by_side import side_by_side
from ..control.rules.host_call import calls_user_code
from ..core.interpret import inline
from ..core.program import Const, Program, literal
from ..core.trace import Guard, NoWitness, Tracer, building
from ..core.types import ArrayType, type_of
from ..core.witness import CodeBuilder
from ..ops.host import as_host_call
from ..run.jax_operation import JaxOperation
from ..transforms.simplify import condense, for_compiler
from ..xla import Compiled, Division, device_arrays, fastest, is_jax, is_jax_tracer, to_numpy
from ..xla.meshes import is_on_several_devices
from .call import Traced, name_of, trace_flat
from .random_draws import Draws
from .rolling import PackedGuards, rolling, with_stacked_captures

P = ParamSpec("P")
Result = TypeVar("Result")

_NUMBERS = (float, int, bool, complex)
_MOST_PATHS = 32
# Captured arrays up to this size are constants to XLA, which folds them; larger ones are passed on each call.
_EMBEDDED_BYTES = 1 << 16

_compiling: ContextVar[bool] = ContextVar("compiling", default=False)


def is_compiling() -> bool:
    """Whether what is being traced will be compiled and kept, so that what it captures is constant from then on."""
    return _compiling.get()


class Path(NamedTuple):
    """One compiled way through a function: what was traced, and what was assumed.

    Attributes:
        compiled: the compiled program; its last results hold the values of the guards.
        constants: the captured arrays, on the device.
        guards: the predicates that were assumed.
        packed: which results hold their values.
        structure: structure of the function's result.
        strides: the strides of arguments, by position, which say what is a view in the function and what a copy.
        on_device: whether an argument or a captured array is JAX's, so that results stay JAX arrays.
        ends: what is called when it has run, or failed.
        note: what its maker wants to know of it.
    """

    compiled: Compiled
    constants: list[Any]
    guards: list[Guard]
    packed: PackedGuards
    structure: tree.Structure
    strides: dict[int, tuple[int, ...]]
    on_device: bool
    ends: Sequence[Callable[[], None]]
    note: Any = None

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether arguments lie in memory as those that the function was traced with, where that matters."""
        return all(is_plain(x := leaves[i], np.ndarray) and x.strides == s for i, s in self.strides.items())

    def split(self, outs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Results of the compiled program: those of the function, and those that hold the values of guards."""
        count = len(outs) - len(self.packed.groups)
        return outs[:count], outs[count:]

    def first_miss(self, values: Sequence[Any]) -> int:
        """The first guard whose value differs from what was assumed; one does."""
        pairs = zip(self.guards, values, strict=True)
        return next(index for index, (guard, value) in enumerate(pairs) if not guard.holds_for(value))

    def assumes_the_same(self, other: Path) -> bool:
        """Whether two paths are one, because all that they assume is equal."""
        return (
            self.strides == other.strides
            and len(self.guards) == len(other.guards)
            and all(mine.assumes_the_same(others) for mine, others in zip(self.guards, other.guards, strict=True))
        )


class Paths:
    """The compiled paths of a function for one signature, the latest used first.

    Attributes:
        paths: the paths.
        swaps_bytes: whether an argument has the byte order of another machine.
        eager: the class of those arguments that are more than arrays, or None.
    """

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.swaps_bytes = any(native(x) is not x for x in leaves)
        self.eager = next((type(x) for x in leaves if isinstance(x, Eager)), None)
        self.paths: tuple[Path, ...] = ()
        self._lock = threading.Lock()

    def add(self, path: Path) -> Path:
        """Enter a path, unless it is known; return the one to be used.  Of too many, the one unused longest goes."""
        # Where rounding makes XLA and NumPy differ over a predicate, and where threads trace at once, it is known.
        path = next((p for p in self.paths if p.assumes_the_same(path)), path)
        self.use(path)
        self.paths = self.paths[:_MOST_PATHS]
        return path

    def first(self, leaves: Sequence[Any]) -> Path | None:
        """The path used last that takes arguments with the strides of these."""
        known = self.paths
        if known and not known[0].strides:
            return known[0]
        return next((p for p in known if p.fits(leaves)), None)

    def find(self, miss: int, values: Sequence[Any], tried: Sequence[Path], leaves: Sequence[Any]) -> Path | None:
        """A path, not tried yet, that assumes the actual outcomes of the guards up to number `miss`."""
        for path in self.paths:
            if any(path is t for t in tried) or len(path.guards) <= miss or not path.fits(leaves):
                continue
            if all(path.guards[i].holds_for(values[i]) for i in range(miss + 1)):
                return path
        return None

    def use(self, path: Path) -> None:
        """Try this path first from now on."""
        if not self.paths or self.paths[0] is not path:
            with self._lock:
                self.paths = (path, *[p for p in self.paths if p is not path])


def new_path(
    f: Callable[..., Any],
    leaves: list[Any],
    call: Callable[[list[Any]], Any],
    donated: Callable[[], tuple[int, ...]] | None = None,
    note: Any = None,
    tunes: bool = False,
    rolls: bool = True,
    divided: Callable[[tree.Structure, Sequence[ArrayType]], Division] | None = None,
    methods: Sequence[Callable[..., Any]] = (),
) -> Path:
    """Trace and compile a function for these arguments, on the path that its control flow takes for them.

    Args:
        f: the function, for its name.
        leaves: the arrays among the arguments.
        call: calls the function with tracers in their place.
        donated: says, once the function is traced, which leaves XLA may overwrite.
        note: what the path is to carry for its maker.
        tunes: whether to compile several forms, and keep the one that is fastest for these arguments.
        rolls: whether to compile loops of Python as loops.
        divided: says, once the function is traced, from the structure and the types of its results how they and the
            leaves are divided over devices.
        methods: methods of modules that the function may call.
    """
    is_in_jax = any(map(is_jax_tracer, leaves))
    with rolling(rolls):
        traced, program, packed, captured = without_collector(_bound, f, leaves, call, is_in_jax, methods)
    # Values of many equations side by side would be moved between devices that hold a part of each.
    is_divided = divided is not None or any(map(is_on_several_devices, (*leaves, *traced.captured)))
    program = program if is_in_jax or is_divided else side_by_side(program)
    guards = traced.builder.guards
    # A path whose guards miss is followed by another one, which still needs the arguments; and where the user's code on
    # the host raises, there are no results in their place.
    given = () if donated is None or guards or calls_user_code(program) else donated()
    on_device = any(is_jax(x) for x in (*leaves, *traced.captured))
    constants = device_arrays([native(x) for x in captured])
    ends = list(map(as_host_call, program.endings()))
    assumed = traced.builder.assumed
    kept = len(packed.groups)
    types = program.out_types[: len(program.outputs) - kept]
    division = None if divided is None else divided(traced.structure, types)
    compiled: Any = JaxOperation(program, division) if is_in_jax else Compiled(program, given, None, division, kept)
    # What is timed runs many times, so what the host does for it would be repeated.
    if tunes and not calls_user_code(program) and not ends and not is_in_jax:
        best = fastest(program, [*leaves, *constants])
        compiled = Compiled(program, given, best.limit, division, kept)
    return Path(compiled, constants, guards, packed, traced.structure, assumed, on_device, ends, note)


@in_own_context
def _bound(
    f: Callable[..., Any],
    leaves: list[Any],
    call: Callable[[list[Any]], Any],
    is_in_jax: bool,
    methods: Sequence[Callable[..., Any]],
) -> tuple[Traced, Program, PackedGuards, list[Any]]:
    """A function as it was traced, its program as it runs, its guards, and the captured arrays that are inputs.

    A program that becomes an operation of JAX may still be differentiated.
    """
    traced = trace_guarded(f, leaves, call, methods)
    if any(isinstance(x, Eager) for x in traced.captured):
        raise _closes_over_eager(f)
    if any(map(is_jax_tracer, traced.captured)):
        raise _closes_over_jax_tracer(f)
    program, packed = PackedGuards.of(traced.program, traced.builder.guards)
    program, captured = with_stacked_captures(program, len(leaves), traced.captured, is_compiled=True)
    # Small arrays become constants.
    program, captured = bind(program, len(leaves), captured, _EMBEDDED_BYTES)
    return traced, condense(program) if is_in_jax else for_compiler(program), packed, captured


def run_known(paths: Paths, f: Callable[..., Any], leaves: Sequence[Any]) -> tuple[list[Any], Path] | None:
    """The results of the path that fits the arguments, and the path; None if there is none yet."""
    path: Path | None = paths.first(leaves)
    tried: list[Path] = []
    while path is not None:
        outs = path.compiled(*leaves, *path.constants)
        if not path.guards:
            if path.strides:
                paths.use(path)
            return outs, path
        outs, packed = path.split(outs)
        if any(map(is_jax_tracer, packed)):
            raise TypeError(
                f"{name_of(f)} branches in Python on a traced value, which cannot be checked inside a JAX "
                f"transformation; use numpy.where or ftrans.cond{at_line(path.guards[0].line)}"
            )
        if path.packed.hold(packed, path.guards):
            paths.use(path)
            return outs, path
        values = path.packed.values(packed)
        miss = path.first_miss(values)
        # Each path is tried once: two programs may round a predicate to either side of where it changes.
        tried.append(path)
        path = paths.find(miss, values, tried, leaves)
    return None


def run_path(path: Path, leaves: Sequence[Any]) -> list[Any]:
    """The results of a path whose guards hold."""
    return path.split(path.compiled(*leaves, *path.constants))[0]


def run_compiled(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run a program compiled; results are NumPy arrays."""
    compiled = program.derive("compiled", lambda: Compiled(side_by_side(for_compiler(program))))
    return [to_numpy(x) for x in compiled(*args)]


def trace_guarded(
    f: Callable[..., Any],
    leaves: list[Any],
    call: Callable[[list[Any]], Any],
    methods: Sequence[Callable[..., Any]] = (),
) -> Traced:
    """A function traced with guards, for what will be compiled; `methods` are those of modules that it may call."""
    draws = Draws(f, methods)
    types = [type_of(x) for x in leaves]
    weak = [is_plain(x, _NUMBERS) and not is_plain(x, np.generic) for x in leaves]
    token = _compiling.set(True)
    try:
        traced, _ = trace_flat(f, types, call, leaves, weak, shared=False, with_guards=True, rolls=False)
    finally:
        _compiling.reset(token)
    draws.warn()
    return traced


def without_collector(f: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """The result of a function during which Python's cyclic garbage collector does not run.

    Tracing and lowering a long function make many objects and drop few, so collections in between find nothing and
    cost up to a third of the time.  Of several threads that do so at once, the first one switches it on again.
    """
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        return f(*args, **kwargs)
    finally:
        if was_enabled:
            gc.enable()


def native(x: Any) -> Any:
    """`x` in the byte order of this machine, which is the only one that XLA takes."""
    if is_plain(x, np.ndarray | np.generic) and not x.dtype.isnative:
        return x.astype(x.dtype.newbyteorder("="))
    return x


def _closes_over_eager(f: Any) -> TypeError:
    return TypeError(
        f"{name_of(f)} closes over a tensor, which would be a constant of the compiled program and get no gradient; "
        "pass it as an argument, or close over its array, x.detach().numpy(). For one that is made inside, such as "
        f"torch.zeros(3), write np.zeros(3){at_line(user_line())}"
    )


def _closes_over_jax_tracer(f: Any) -> TypeError:
    return TypeError(
        f"{name_of(f)} closes over a value that JAX is tracing, which would become a constant of the compiled program; "
        f"pass it as an argument, or call the function without ftrans.jit, since JAX compiles it{at_line(user_line())}"
    )


def bind(program: Program, count: int, captured: Sequence[Any], most_bytes: float) -> tuple[Program, list[Any]]:
    """`program` with captured inputs up to a size as constants, and the captured values that stay inputs."""
    is_bound = [_is_constant(x, most_bytes) for x in captured]
    if not any(is_bound):
        return program, list(captured)
    rest = [x for x, b in zip(captured, is_bound, strict=True) if not b]
    types = [*program.in_types[:count], *map(type_of, rest)]
    builder = CodeBuilder(types, NoWitness("the program is bound to constants"))
    with building(builder):
        inputs = builder.inputs()
        others = iter(inputs[count:])
        bound = [Tracer(builder, _constant(x)) if b else next(others) for x, b in zip(captured, is_bound, strict=True)]
        outs = inline(program, [*inputs[:count], *bound])
        return builder.finish(outs, program.name), rest


def _is_constant(x: Any, most_bytes: float) -> bool:
    """Whether a captured array is to be a constant.  One that is divided over devices would be gathered for that."""
    return (
        type_of(x).nbytes <= most_bytes and not (is_on_several_devices(x) and most_bytes < math.inf)
    ) or _is_uniform(x)


def _constant(x: Any) -> Const:
    type = type_of(x)
    # The program is kept, so it must not change with the array.
    array = np.array(x, type.dtype)
    if type.shape == ():
        return literal(array[()], type)
    return literal(array.flat[0], type) if _is_uniform(array) else Const(array, type)


def _is_uniform(x: Any) -> bool:
    """Whether an array of conditions is true everywhere, or false, so that what it chooses needs no choice."""
    if not is_plain(x, np.ndarray) or x.dtype != np.bool_ or not x.size:
        return False
    return bool(x.all() or not x.any())
