"""check_grads: check the derivatives of a function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..api.call import name_of, trace_flat, type_name
from ..base import tree
from ..base.progress import working
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..core.primitive import MissingRule
from ..core.program import Program
from ..core.trace import Tracer
from ..core.types import ArrayType, is_inexact, type_of
from .culprits import culprits
from .derivatives import Arrays, Flags, Mode, coordinates, differentiable, run
from .examine import examine
from .failures import Failure, Report
from .precision import rounding_unit, widened
from .subject import Settings, Subject

_MODES = ("forward", "reverse")
# A step of differences below this power of the rounding unit is too small for that precision.
_SMALL_STEP = 1 / 3
# How far a function and its program may differ, in rounding units.
_SAME = 1e4


@short_tracebacks
def check_grads(
    f: Callable[..., Any],
    *args: Any,
    order: int = 2,
    modes: Sequence[str] = _MODES,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    nondet_tol: float = 0.0,
    raise_exception: bool = True,
    seed: int = 0,
) -> bool:
    """Check the derivatives of a function at a point, and find the operation whose derivative is wrong.

    Along random directions, up to the given order and in all combinations of modes, it checks

    * that finite differences converge to the derivative: over a range of steps, extrapolated to step zero (Ridders
      1982), which is accurate to about nine digits;
    * that forward and reverse mode are transposes of each other, <u, J v> = <J^T u, v>, which needs no step;
    * that a float32, float16 or bfloat16 function has the same derivative as in float64, up to rounding.  The other
      checks run in float64: `f` is traced for float64 arguments, and casts to lower precision are dropped;
    * that derivatives do not change values, that calling `f` twice gives the same result, and that tracing `f` does not
      change it.

    If a check fails, each equation of the program is checked by itself, at the values that it has in the program.  The
    error names the wrong operation and your line.

    At a kink, a tie or a jump a function has no derivative, whatever a rule returns there.  The check says so: check at
    another point.  Finite differences follow the path that Python's `if` and `while` take at the point.  The result of
    an iterative solver has a derivative up to its tolerance: pass a larger `rtol`.

    A check takes about 30 evaluations of the function, and as many of each derivative below `order`, on NumPy.  Jitted
    functions run equation by equation.

    Args:
        f: the function.  It returns arrays or containers of them; arrays that are not floating-point are ignored.
        args: its arguments.  Floating-point arrays, Python floats, and containers of them are differentiated; integers,
            booleans and other objects are held fixed.
        order: highest order of derivatives to check.
        modes: "forward", "reverse", or both.
        eps: a step.  If given, Jacobians are also compared element by element with central differences of this step, in
            double precision (along random directions if they have more than 256 rows or columns).
        atol: absolute tolerance for derivatives: 0 by default, 1e-5 for the comparison with `eps`.
        rtol: relative tolerance: 1e-6 by default, 1e-3 for the comparison with `eps`.
        nondet_tol: tolerance for the difference between two computations of the same derivative.
        raise_exception: whether to raise if a check fails, instead of returning False.
        seed: seed of the random directions.

    Returns:
        True, or False if a check fails and `raise_exception` is False.

    Raises:
        GradientError: a derivative is wrong, or the function is not differentiable at this point.  It has the
            attributes `failures` and `culprits`.
        TypeError: there is nothing to differentiate.
        ValueError: an option is invalid.
        MissingRule: an operation has no derivative in one of the modes.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.testing.check_grads(lambda x: np.sum(np.sin(x) ** 2), np.array([0.5, 1.0]))
        True
        >>> @ft.custom_vjp
        ... def cube(x):
        ...     return x**3
        >>> cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (2.994 * x**2 * ct,))
        >>> ft.testing.check_grads(cube, 2.0, raise_exception=False)
        False
    """
    settings = _settings(order, modes, eps, atol, rtol, nondet_tol, seed)
    given = _Arguments.of(f, args)
    warn_of_small_step(eps, given.leaves, name_of(f), 3)
    with working(f"checking the derivatives of {name_of(f)}"):
        report = _checked(f, given, settings)
    return report.passed("check_grads", raise_exception, stacklevel=3)


def check_program(
    program: Program,
    args: Arrays,
    active: Flags | None = None,
    settings: Settings | None = None,
    wide: tuple[Program, Arrays] | None = None,
    out_names: Sequence[str] | None = None,
) -> Report:
    """Check the derivatives of a program at a point.

    Args:
        program: the program.
        args: a NumPy array or number for each input.
        active: which inputs are differentiated; all that are floating-point by default.
        settings: how.
        wide: the same function for arguments in double precision, with those, if it is known; `program` widened by
            default.
        out_names: names of the outputs, for messages.
    """
    settings = settings or Settings()
    active = differentiable(program.in_types) if active is None else active
    names = tuple(out_names or (f"result {i}" for i in range(len(program.outputs))))
    subject = Subject.of(program, tuple(map(_array, args)), active, names, wide)
    failures, doubts = examine(subject, settings)
    found = culprits(subject, settings, failures) if failures else []
    return Report(program.name, tuple(failures), tuple(found), tuple(doubts))


def _array(x: Any) -> Any:
    return x if is_plain(x, np.ndarray | np.generic) else np.asarray(x)[()]


class _Arguments:
    """The arguments of a function, of which the floating-point ones are differentiated.

    Attributes:
        leaves: the values of those, as NumPy arrays and numbers.
    """

    def __init__(
        self, f: Callable[..., Any], leaves: list[Any], weak: list[bool], call: Callable[[Sequence[Any]], Any]
    ) -> None:
        self.f, self.leaves, self.weak, self.call = f, leaves, weak, call

    @classmethod
    def of(cls, f: Callable[..., Any], args: tuple[Any, ...]) -> _Arguments:
        """Take the arguments of a call apart."""
        every, structure = tree.flatten(args)
        if any(isinstance(x, Tracer) for x in every):
            raise TypeError(
                f"check_grads needs the values of the arguments of {name_of(f)}, but is called inside of a traced "
                f"function, where there are none; call it outside{at_line(user_line())}"
            )
        places = [i for i, x in enumerate(every) if _is_differentiated(x)]
        if not places:
            raise TypeError(
                f"check_grads found no floating-point argument of {name_of(f)}: it was given "
                f"{', '.join(map(type_name_of, every)) or 'none'}. Pass arrays of floats, as check_grads(f, x, y)"
                + at_line(user_line())
            )

        def call(values: Sequence[Any]) -> Any:
            leaves = list(every)
            for i, value in zip(places, values, strict=True):
                leaves[i] = value
            return f(*tree.unflatten(structure, leaves))

        # A number of Python's takes the precision of the arrays that it meets.
        weak = [is_plain(every[i], float | complex) and not is_plain(every[i], np.generic) for i in places]
        return cls(f, [np.asarray(every[i])[()] for i in places], weak, call)

    def traced(self, leaves: list[Any]) -> tuple[Program, list[Any], tuple[str, ...]]:
        """The program of the function at values of the leaves, its arguments, and names of its outputs."""
        types: list[ArrayType] = [type_of(x) for x in leaves]
        traced, _ = trace_flat(self.f, types, self.call, leaves, self.weak, shared=False, rolls=False)
        out = tree.unflatten(traced.structure, list(range(traced.structure.num_leaves)))
        names = ("result",) if traced.structure is tree.LEAF else tuple(f"result{p}" for p in tree.paths(out))
        return traced.program, [*leaves, *map(_array, traced.captured)], names

    def values(self) -> list[Any]:
        """What the function returns outside of a trace."""
        with np.errstate(all="ignore"):
            leaves = [x.item() if w else np.array(x)[()] for x, w in zip(self.leaves, self.weak, strict=True)]
            return [np.asarray(x) for x in tree.flatten(self.call(leaves))[0]]


def type_name_of(x: Any) -> str:
    """How an argument that is held fixed is called in a message."""
    try:
        return str(type_of(x))
    except TypeError:
        return type_name(x)


def _is_differentiated(x: Any) -> bool:
    if is_plain(x, int | str | bytes) or x is None:
        return False
    try:
        return is_inexact(type_of(x).dtype)
    except TypeError:
        return False


def _checked(f: Callable[..., Any], given: _Arguments, settings: Settings) -> Report:
    program, args, names = given.traced(given.leaves)
    if not any(differentiable(program.out_types)):
        raise TypeError(
            f"check_grads needs a floating-point result, but {name_of(f)} returned "
            f"{', '.join(map(str, program.out_types)) or 'nothing'}{at_line(user_line())}"
        )
    active = tuple(i < len(given.leaves) for i in range(len(args)))
    failures = _impurity(given, program, args, settings)
    if failures:
        return Report(name_of(f), tuple(failures), (), ())
    try:
        return check_program(program, args, active, settings, _wide(given, program, len(args)), names)
    except MissingRule as error:
        error.add_note("check_grads checks both modes; modes=('forward',) or modes=('reverse',) checks one")
        raise


def _wide(given: _Arguments, program: Program, count: int) -> tuple[Program, list[Any]] | None:
    """The program of the function for arguments in double precision, if it has as many inputs and outputs there."""
    if not any(x.dtype != widened(x).dtype for x in given.leaves):
        return None
    try:
        wide, args, _ = given.traced([widened(x) for x in given.leaves])
    except Exception:
        return None
    shapes = [t.shape for t in program.out_types]
    return (wide, args) if len(args) == count and [t.shape for t in wide.out_types] == shapes else None


def _impurity(given: _Arguments, program: Program, args: Arrays, settings: Settings) -> list[Failure]:
    """Failures of a function that is not one: its values differ from call to call, or where it is traced."""
    values = run(program, args)
    again, again_args, _ = given.traced(given.leaves)
    repeated = run(again, again_args)
    if len(repeated) != len(values) or not _are_close(repeated, values, settings.nondet_tol):
        text = "called twice at the same point, it gives different values: it reads what changes, as random numbers do"
        return [Failure("determinism", (), text, np.nan, np.nan)]
    try:
        plain = given.values()
    except Exception:
        return []
    if [x.shape for x in plain] != [np.shape(x) for x in values]:
        return []
    unit = max((rounding_unit(x.dtype) for x in map(np.asarray, values) if is_inexact(x.dtype)), default=0.0)
    size = float(np.max(np.abs(coordinates(values)), initial=0))
    if not _are_close(plain, values, _SAME * unit * size if np.isfinite(size) else np.inf):
        gap = int(np.argmax(np.abs(coordinates(plain) - coordinates(values))))
        a, b = coordinates(plain)[gap], coordinates(values)[gap]
        text = (
            f"called with plain arrays it gives {a:.9g}, where it gives {b:.9g} while it is traced for its derivative"
        )
        return [Failure("value", (), text, float(b), float(a))]
    return []


def _are_close(xs: Arrays, ys: Arrays, tolerance: float) -> bool:
    with np.errstate(all="ignore"):
        gaps = coordinates(xs) - coordinates(ys)
    same = coordinates(xs).tobytes() == coordinates(ys).tobytes()
    return same or not bool(np.any(np.abs(gaps) > tolerance))


def _settings(
    order: int,
    modes: Sequence[str],
    eps: float | None,
    atol: float | None,
    rtol: float | None,
    nondet_tol: float,
    seed: int,
) -> Settings:
    wanted: tuple[str, ...] = (modes,) if isinstance(modes, str) else tuple(modes)
    if not wanted or any(mode not in _MODES for mode in wanted):
        raise ValueError(f'modes must be "forward", "reverse" or both, not {modes!r}{at_line(user_line())}')
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"order must be 1 or more, not {order!r}{at_line(user_line())}")
    for name, value in (("eps", eps), ("atol", atol), ("rtol", rtol), ("nondet_tol", nondet_tol)):
        if (value is not None and not (value >= 0 and np.isfinite(value))) or (name == "eps" and value == 0):
            raise ValueError(f"{name} must be a positive number, not {value!r}{at_line(user_line())}")
    chosen: tuple[Mode, ...] = tuple(m for m in ("forward", "reverse") if m in wanted)
    return Settings(order, chosen, eps, atol, rtol, nondet_tol, seed)


def warn_of_small_step(eps: float | None, values: Arrays, name: str, stacklevel: int) -> None:
    """Warn if a step of differences is small for the precision of the arguments of a function."""
    for index, x in enumerate(values if eps is not None else ()):
        unit = rounding_unit(x.dtype)
        if eps is not None and unit > rounding_unit(np.dtype(np.float64)) and eps < unit**_SMALL_STEP:
            percent = 100 * min(unit / eps, 1e4)
            warnings.warn(
                f"argument {index} of {name} is {type_of(x)}, for which eps={eps:g} is a small step: values are "
                f"rounded to a part of {unit:.1g}, so differences of them over this step may be off by {percent:.2g} % "
                "of the value, which is unreliable. They are taken in float64 here, and the derivative in its own "
                "precision is compared with that in float64. Pass float64 arrays, or leave eps out",
                stacklevel=stacklevel + 1,
            )
            return
