"""jit: a function -> compiled programs, one for each signature and each path that Python control flow takes.

While the function is traced, a Python branch on a traced value is decided by the actual arguments.  The compiled
program also returns the predicates that were assumed (its *guards*).  A call checks them; on a miss the path with
the other outcome is taken, or traced and compiled.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..control.call import call as call_primitive
from ..core import tree
from ..core.eager import Eager
from ..core.interpret import inline
from ..core.program import Const, Program, literal
from ..core.source import at_line, user_line
from ..core.trace import Builder, Guard, NoWitness, Tracer, building, current_builder
from ..core.types import type_of
from ..transforms.simplify import simplify
from ..xla import Compiled, is_jax, is_jax_tracer, to_numpy
from . import anomaly
from .call import Traced, name_of, named, trace_flat, type_name
from .progress import close_bars, open_bars

_NUMBERS = (float, int, bool, complex)
_MOST_PATHS = 32
# Captured arrays up to this size are constants to XLA, which folds them; larger ones are passed on each call.
_EMBEDDED_BYTES = 1 << 16


class Path(NamedTuple):
    """One compiled way through a function: what was traced, and what was assumed.

    Attributes:
        compiled: the compiled program; its last results are the guards.
        constants: the captured arrays, on the device.
        guards: the predicates that were assumed.
        structure: structure of the function's result.
        on_device: whether an argument or a captured array is JAX's, so that results stay JAX arrays.
    """

    compiled: Compiled
    constants: list[Any]
    guards: list[Guard]
    structure: tree.Structure
    on_device: bool

    def first_miss(self, values: Sequence[Any]) -> int | None:
        """The first guard whose value differs from what was assumed."""
        for index, (guard, value) in enumerate(zip(self.guards, values, strict=True)):
            if not _equal(value, guard.expected):
                return index
        return None

    def assumes_the_same(self, other: Path) -> bool:
        """Whether two paths are one, because all that they assume is equal."""
        return len(self.guards) == len(other.guards) and all(
            mine.line is others.line and _equal(mine.expected, others.expected)
            for mine, others in zip(self.guards, other.guards, strict=True)
        )


def _equal(value: Any, expected: Any) -> bool:
    return bool(np.all(np.asarray(value) == np.asarray(expected)))


class Paths:
    """The compiled paths of a function for one signature, the latest used first.

    Attributes:
        paths: the paths.
        swaps_bytes: whether an argument has the byte order of another machine.
        eager: the class of those arguments that are more than arrays, or None.
    """

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.swaps_bytes = any(_native(x) is not x for x in leaves)
        self.eager = next((x.__class__ for x in leaves if isinstance(x, Eager)), None)
        self.paths: list[Path] = []
        self._has_warned = False

    def add(self, path: Path, f: Callable[..., Any]) -> None:
        """Enter a new path; warn once if there are too many of them, and forget the one unused longest."""
        self.paths.insert(0, path)
        if len(self.paths) > _MOST_PATHS:
            self.paths.pop()
            if not self._has_warned:
                self._has_warned = True
                line = path.guards[-1].line if path.guards else None
                warnings.warn(
                    f"jit has compiled {name_of(f)} for more than {_MOST_PATHS} outcomes of Python control flow on "
                    f"traced values; each one costs a compilation. Write numpy.where for a choice of values, or "
                    f"ftrans.cond, ftrans.while_loop or ftrans.fori_loop for the branch or loop{at_line(line)}",
                    RuntimeWarning,
                    stacklevel=4,
                )

    def find(self, miss: int, values: Sequence[Any], tried: Sequence[Path]) -> Path | None:
        """A path, not tried yet, that assumes the actual outcomes of the guards up to number `miss`."""
        for path in self.paths:
            if any(path is t for t in tried) or len(path.guards) <= miss:
                continue
            if all(_equal(path.guards[i].expected, values[i]) for i in range(miss + 1)):
                return path
        return None

    def use(self, path: Path) -> None:
        """Try this path first from now on."""
        if self.paths[0] is not path:
            self.paths = [p for p in self.paths if p is not path]
            self.paths.insert(0, path)


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Compile a function by XLA.

    The function is traced once for each combination of shapes, dtypes and static arguments, and once more for each
    way that Python control flow on its values takes.  Arrays that it closes over are constants from then on.

    Args:
        f: the function.  Without it, a decorator is returned.
        static_argnums: positions of arguments that are no arrays (flags, sizes, functions); they must be hashable.
        static_argnames: the same by name.
        donate_argnums: positions of JAX array arguments whose memory the results may take.

    Returns:
        A function of the same arguments.  Its results are NumPy arrays, or JAX arrays if an argument is one.  Its
        attribute `lower(*args)` gives JAX's `Lowered` object.

    Raises:
        TypeError: an argument is neither an array nor static.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.jit(lambda x: x * 2 if x.sum() > 0 else x)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    if f is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums
        )
    function = f
    statics = _Statics(function, static_argnums, static_argnames)
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    has_statics = bool(statics.positions or statics.names)
    cache: dict[Any, Paths] = {}

    def prepare(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        """The signature of a call, its array leaves, and how to call the function with others in their place."""
        if not kwargs and not has_statics:
            # The usual call, without containers, is spared the cost of taking them apart.
            keys = [_leaf_key(x) for x in args]
            if None not in keys:
                return tuple(keys), list(args), (None, None, False)
        static: Any = None
        if has_statics:
            static, args, kwargs = statics.take(args, kwargs)
        leaves, structure = tree.flatten((args, kwargs) if kwargs else args)
        keys = [_leaf_key(x) for x in leaves]
        if None in keys:
            raise _not_an_array(function, keys.index(None), leaves, args, kwargs)
        key = (structure, bool(kwargs), static and _exactly(static), tuple(keys))
        return key, leaves, (structure, static, bool(kwargs))

    def rebuild(how: Any) -> Callable[[list[Any]], Any]:
        structure, static, has_kwargs = how

        def call(values: list[Any]) -> Any:
            if structure is None:
                return function(*values)
            whole = tree.unflatten(structure, values)
            new_args, new_kwargs = whole if has_kwargs else (whole, {})
            if static is not None:
                new_args, new_kwargs = statics.put_back(static, new_args, new_kwargs)
            return function(*new_args, **new_kwargs)

        return call

    def new_path(leaves: list[Any], how: Any, args: tuple[Any, ...]) -> Path:
        with _collector_paused():
            traced = _trace_guarded(function, leaves, rebuild(how))
            if any(isinstance(x, Eager) for x in traced.captured):
                raise _closes_over_eager(function)
            program, captured = _bind(traced.program, len(leaves), traced.captured, _EMBEDDED_BYTES)
            program = simplify(program)
        guards = traced.builder.guards
        # A path whose guards miss is followed by another one, which still needs the arguments.
        given = {i % len(args) for i in donated if -len(args) <= i < len(args)}
        donated_leaves = () if guards else _donated_leaves(given, args, statics.among(len(args)))
        on_device = any(is_jax(x) for x in (*leaves, *traced.captured))
        constants = _on_device(captured)
        return Path(Compiled(program, donated_leaves), constants, guards, traced.structure, on_device)

    @functools.wraps(function)
    def jit_of_f(*args: Any, **kwargs: Any) -> Any:
        if current_builder() is not None:
            return _call_inside(function, *prepare(args, kwargs)[1:], rebuild)
        key, leaves, how = prepare(args, kwargs)
        try:
            paths = cache.get(key)
        except TypeError:
            raise _unhashable_static(function, how[1]) from None
        if paths is None:
            paths = cache[key] = Paths(leaves)
        if paths.swaps_bytes:
            leaves = [_native(x) for x in leaves]
        if paths.eager is not None:
            return _apply_to_eager(paths, function, leaves, lambda arrays: new_path(arrays, how, args))
        count = len(open_bars)
        try:
            outs, path = _run_paths(paths, function, leaves, lambda: new_path(leaves, how, args))
            if not path.on_device:
                outs = [to_numpy(x) for x in outs]
            if anomaly.is_anomaly_enabled():
                _check(path, leaves, outs, () if how[1] is not None else (args, kwargs))
        except BaseException:
            close_bars(count)
            raise
        if len(open_bars) > count and not path.on_device:
            close_bars(count)
        return tree.unflatten(path.structure, outs)

    def lower(*args: Any, **kwargs: Any) -> Any:
        """JAX's `Lowered` object for these arguments."""
        _, leaves, how = prepare(args, kwargs)
        path = new_path(leaves, how, args)
        with _collector_paused():
            return path.compiled.lower(*leaves, *path.constants)

    compiled = named(jit_of_f, function, "jit")
    compiled.lower = lower  # type: ignore[attr-defined]
    return compiled


def _apply_to_eager(paths: Paths, f: Callable[..., Any], leaves: list[Any], trace: Callable[[list[Any]], Path]) -> Any:
    """The result of a compiled function on arguments some of which are more than arrays."""
    arrays = [x.concrete() if isinstance(x, Eager) else x for x in leaves]
    path = paths.paths[0] if paths.paths else None
    if path is None or path.guards:
        _, path = _run_paths(paths, f, arrays, lambda: trace(arrays))
    assert paths.eager is not None
    name = f.__name__ if hasattr(f, "__name__") else "function"
    outs = paths.eager.apply_program(path.compiled.program, [*leaves, *path.constants], _run_compiled, name)
    return tree.unflatten(path.structure, outs[: len(outs) - len(path.guards)])


def _run_compiled(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run a program compiled; results are NumPy arrays."""
    compiled = program.derive("compiled", lambda: Compiled(simplify(program)))
    return [to_numpy(x) for x in compiled(*args)]


def _check(path: Path, leaves: list[Any], outs: list[Any], arguments: tuple[Any, ...]) -> None:
    """Raise AnomalyError if results of a compiled path are not finite."""
    if any(map(is_jax_tracer, outs)):
        return

    def names() -> list[str]:
        paths = [path for part in arguments for path in tree.paths(part)]
        named = [path[1:].replace("]", "", 1).replace("'", "", 2 * path.startswith("['")) for path in paths]
        return [f"argument {name}" for name in named]

    anomaly.check(path.compiled.program, [*leaves, *path.constants], outs, names=names)


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's cyclic garbage collector from running.

    Tracing and lowering a long function make many objects and drop few, so collections in between find nothing and
    cost up to a third of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _run_paths(
    paths: Paths, f: Callable[..., Any], leaves: list[Any], trace: Callable[[], Path]
) -> tuple[list[Any], Path]:
    path: Path | None = paths.paths[0] if paths.paths else None
    tried: list[Path] = []
    while path is not None:
        outs = path.compiled(*leaves, *path.constants)
        if not path.guards:
            return outs, path
        count = len(outs) - len(path.guards)
        if is_jax_tracer(outs[0]):
            raise TypeError(
                f"{name_of(f)} branches in Python on a traced value, which cannot be checked inside a JAX "
                f"transformation; use numpy.where or ftrans.cond{at_line(path.guards[0].line)}"
            )
        values = outs[count:]
        miss = path.first_miss(values)
        if miss is None:
            paths.use(path)
            return outs[:count], path
        # Each path is tried once: two programs may round a predicate to either side of where it changes.
        tried.append(path)
        path = paths.find(miss, values, tried)
    path = trace()
    # Where rounding makes XLA and NumPy differ over a predicate, this path has been compiled before.
    path = next((p for p in paths.paths if p.assumes_the_same(path)), path)
    # The path was traced with these very arguments, so its guards hold, whatever rounding says of them.
    outs = path.compiled(*leaves, *path.constants)
    if any(p is path for p in paths.paths):
        paths.use(path)
    else:
        paths.add(path, f)
    return outs[: len(outs) - len(path.guards)], path


def _trace_guarded(f: Callable[..., Any], leaves: list[Any], call: Callable[[list[Any]], Any]) -> Traced:
    types = [type_of(x) for x in leaves]
    weak = [isinstance(x, _NUMBERS) and not isinstance(x, np.generic) for x in leaves]
    traced, _ = trace_flat(f, types, call, leaves, weak, shared=False, with_guards=True)
    return traced


def _call_inside(
    f: Callable[..., Any], leaves: list[Any], how: Any, rebuild: Callable[[Any], Callable[[list[Any]], Any]]
) -> Any:
    """A call of a jitted function while another trace runs: one equation that holds the program."""
    types = [type_of(x) for x in leaves]
    weak = [x.weak if isinstance(x, Tracer) else isinstance(x, _NUMBERS) for x in leaves]
    traced, _ = trace_flat(f, types, rebuild(how), leaves, weak)
    outs = call_primitive(*leaves, *traced.captured, program=traced.program)
    return tree.unflatten(traced.structure, outs)


_kinds: dict[type, str | None] = {float: "number", int: "number", bool: "number", complex: "number"}


def _leaf_key(x: Any) -> Any:
    """What the program of a call depends on in an argument: kind, shape and dtype; None if it is not an array."""
    cls = x.__class__
    try:
        kind = _kinds[cls]
    except KeyError:
        if isinstance(x, np.ndarray | np.generic):
            kind = "numpy"
        elif isinstance(x, Eager):
            kind = "eager"
        else:
            kind = "jax" if is_jax(x) else "traced" if cls is Tracer else None
        _kinds[cls] = kind
    if kind == "number":
        return cls
    return None if kind is None else (kind, x.shape, x.dtype)


def _native(x: Any) -> Any:
    """`x` in the byte order of this machine, which is the only one that XLA takes."""
    if isinstance(x, np.ndarray | np.generic) and not x.dtype.isnative:
        return x.astype(x.dtype.newbyteorder("="))
    return x


def _on_device(captured: list[Any]) -> list[Any]:
    import jax

    with jax.enable_x64(True):
        return [x if is_jax(x) else jax.numpy.asarray(_native(np.asarray(x))) for x in captured]


def _donated_leaves(positions: set[int], args: tuple[Any, ...], static: set[int]) -> tuple[int, ...]:
    """Which leaves of the arguments, not counting static ones, belong to donated positions."""
    donated: list[int] = []
    count = 0
    for position, arg in enumerate(args):
        if position in static:
            continue
        size = len(tree.flatten(arg)[0])
        if position in positions:
            donated += range(count, count + size)
        count += size
    return tuple(donated)


class _Statics:
    """Which arguments are static, by position and by name."""

    def __init__(self, f: Any, argnums: int | Sequence[int], argnames: str | Sequence[str]) -> None:
        self.positions = {argnums} if isinstance(argnums, int) else set(argnums)
        self.names = {argnames} if isinstance(argnames, str) else set(argnames)
        if not self.positions and not self.names:
            return
        import inspect

        declared: Iterable[inspect.Parameter] = ()
        with contextlib.suppress(TypeError, ValueError):
            declared = inspect.signature(f).parameters.values()
        parameters = [p.name for p in declared if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        # A static argument may be given by position or by name, whichever way it was declared.
        self.names |= {parameters[i] for i in self.positions if -len(parameters) <= i < len(parameters)}
        self.positions |= {i for i, name in enumerate(parameters) if name in self.names}

    def take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Divide arguments into static ones (hashable) and others."""
        positions = self.among(len(args))
        static = (
            tuple((i, args[i]) for i in sorted(positions)),
            tuple((k, v) for k, v in sorted(kwargs.items()) if k in self.names),
        )
        others = tuple(x for i, x in enumerate(args) if i not in positions)
        return static, others, {k: v for k, v in kwargs.items() if k not in self.names}

    def among(self, count: int) -> set[int]:
        """Which of so many positional arguments are static."""
        return {i % count for i in self.positions if -count <= i < count}

    def put_back(self, static: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The opposite of `take`."""
        whole = list(args)
        for position, value in static[0]:
            whole.insert(position, value)
        return whole, {**kwargs, **dict(static[1])}


def _exactly(static: Any) -> Any:
    """A key for static arguments that tells apart what Python holds to be equal: 1, 1.0 and True, 0.0 and -0.0."""
    return tuple((name, type(v), str(v) if isinstance(v, float) else None, v) for part in static for name, v in part)


def _unhashable_static(f: Any, static: Any) -> TypeError:
    for _, value in (*static[0], *static[1]):
        try:
            hash(value)
        except TypeError:
            return TypeError(
                f"a static argument of jit({name_of(f)}) must be hashable, but it is {type_name(value)}; pass a tuple "
                f"or another immutable value{at_line(user_line())}"
            )
    return TypeError(f"a container among the arguments of jit({name_of(f)}) has keys that cannot be hashed")


def _closes_over_eager(f: Any) -> TypeError:
    return TypeError(
        f"{name_of(f)} closes over a tensor, which would be a constant of the compiled program and get no gradient; "
        f"pass it as an argument, or close over its array, x.detach().numpy(){at_line(user_line())}"
    )


def _not_an_array(f: Any, index: int, leaves: list[Any], args: Any, kwargs: Any) -> TypeError:
    path = tree.paths((args, kwargs))[index]
    return TypeError(
        f"jit takes arrays, but argument {path[3:]} of {name_of(f)} is {type_name(leaves[index])}; declare it by "
        f"static_argnums or static_argnames{at_line(user_line())}"
    )


def trace(f: Callable[..., Any]) -> Callable[..., Program]:
    """The simplified program that a function is, for given arguments.

    Args:
        f: the function.

    Returns:
        A function of the same arguments that returns the `Program`: print it, `.check()` it, call it on arrays.  Python
        control flow takes the path of these arguments.

    Raises:
        TypeError: an argument is not an array.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> print(ft.trace(lambda x: np.sin(x) + 1)(0.5))  # doctest: +ELLIPSIS
        lambda(a: f64[]) -> f64[]:
          b: f64[] = sin(a) ...
          c: f64[] = add(b, 1.0) ...
          return c
    """

    @functools.wraps(f)
    def trace_of_f(*args: Any, **kwargs: Any) -> Program:
        leaves, structure = tree.flatten((args, kwargs))

        def call(values: list[Any]) -> Any:
            new_args, new_kwargs = tree.unflatten(structure, values)
            return f(*new_args, **new_kwargs)

        types = []
        for index, x in enumerate(leaves):
            try:
                types.append(type_of(x))
            except TypeError:
                path = tree.paths((args, kwargs))[index]
                raise TypeError(
                    f"trace takes arrays, but argument {path[3:]} of {name_of(f)} is {type_name(x)}; close over it"
                    + at_line(user_line())
                ) from None
        weak = [isinstance(x, _NUMBERS) and not isinstance(x, np.generic) for x in leaves]
        traced, _ = trace_flat(f, types, call, leaves, weak, shared=False)
        return simplify(_bind(traced.program, len(leaves), traced.captured, math.inf)[0])

    return trace_of_f


def _bind(program: Program, count: int, captured: Sequence[Any], most_bytes: float) -> tuple[Program, list[Any]]:
    """`program` with captured inputs up to a size as constants, and the captured values that stay inputs."""
    is_bound = [type_of(x).nbytes <= most_bytes for x in captured]
    if not any(is_bound):
        return program, list(captured)
    rest = [x for x, b in zip(captured, is_bound, strict=True) if not b]
    types = [*program.in_types[:count], *map(type_of, rest)]
    builder = Builder(types, NoWitness("the program is bound to constants"))
    with building(builder):
        inputs = builder.inputs()
        others = iter(inputs[count:])
        bound = [Tracer(builder, _constant(x)) if b else next(others) for x, b in zip(captured, is_bound, strict=True)]
        outs = inline(program, [*inputs[:count], *bound])
        return builder.finish(outs, program.name), rest


def _constant(x: Any) -> Const:
    type = type_of(x)
    # The program is kept, so it must not change with the array.
    array = np.array(x, type.dtype)
    return literal(array[()], type) if type.shape == () else Const(array, type)
