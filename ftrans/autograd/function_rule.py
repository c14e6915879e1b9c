"""A Function in a trace: it becomes a function with a custom rule.

`forward` and `backward` are traced.  Code that cannot be traced, because it needs arrays or numbers, becomes a black
box: it runs on concrete values whenever the program does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ..api.custom_rules import CustomRule
from ..base import tree
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..control.rules.black_box import Code, black_box, final
from ..control.rules.host_call import watch
from ..core.trace import Tracer, recording_in
from ..core.types import is_inexact, type_of
from ..core.witness import example_of
from ..numpy.promotion import has_tracer
from .context import CONSTANT, Context, FunctionClass, Wanted, as_tuple, place_of
from .modes import in_forward, no_grad
from .tensor import Tensor

# How many kinds of calls are remembered per Function.
_MOST_KINDS = 100
_may_be_black: ContextVar[bool] = ContextVar("may be black", default=True)
# Whether black-box code is running, as part of a program that runs.
in_black_box: ContextVar[bool] = ContextVar("in black box", default=False)


class without_black_boxes:
    """Within this block, a Function that cannot be traced is an error."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _may_be_black.set(False)

    def __exit__(self, *_: object) -> None:
        _may_be_black.reset(self._token)


def is_final(function: FunctionClass) -> bool:
    """Whether the derivative of a Function is marked by `once_differentiable`."""
    return getattr(function.backward, "is_final", False)


def rule_of(function: FunctionClass, states_backward: bool, states_jvp: bool) -> CustomRule:
    """A Function as a function with a custom rule; its first argument is `needs_input_grad`."""
    learned: dict[Any, Any] = {}

    def value(needs: tuple[bool, ...], *args: Any) -> Any:
        return _forward(function, needs, args, learned)[0]

    def fwd(needs: tuple[bool, ...], *args: Any) -> tuple[Any, Any]:
        out, ctx, box = _forward(function, needs, args, learned)
        ran, kinds = (None, None) if box is None else box
        return out, (
            ctx.left(),
            ran,
            _Static(kinds, _Absent.of(out, ctx), Wanted(function, [tree.flatten(x) for x in args])),
        )

    def bwd(needs: tuple[bool, ...], residuals: Any, cotangent: Any) -> tuple[Any, ...]:
        left, ran, static = residuals
        if is_final(function):
            left = tree.map_leaves(lambda x: final(x, of=name) if isinstance(x, Tracer) else x, left)
        if ran is not None:
            cotangent = tree.map_leaves(lambda ct: watch.apply(_ignore, [ct], [ran])[0], cotangent)
        given = static.absent.replaced(as_tuple(cotangent))
        found = _backward(function, needs, left, static, given, learned)
        return found[: len(needs)] if all(x is None for x in found[len(needs) :]) else found

    def push(needs: tuple[bool, ...], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        out, ctx, _ = _forward(function, needs, primals, learned)
        tangent = function.jvp(ctx.for_jvp(), *tangents)
        if not isinstance(out, tuple | list):
            return out, tangent
        ctx.set_materialize_grads(False)
        return out, type(out)(_Absent.of(out, ctx).replaced(as_tuple(tangent)))

    name = f"{function.__name__}.backward{place_of(function.backward)}"
    value.__name__ = function.__name__
    # Messages name the lines of the methods.
    for rule_of_method, method in ((fwd, function.forward), (bwd, function.backward), (push, function.jvp)):
        vars(rule_of_method)["__wrapped__"] = method
    backward, jvp = (f"a static method {method} of {{}}" for method in ("backward", "jvp"))
    rule = CustomRule(value, 0, reverse=backward, forward=jvp)
    if states_backward:
        rule.defvjp(fwd, bwd)
    if states_jvp:
        rule.defjvp(push)
    return rule


class _Absent:
    """Which results have no derivative, and the substitutes for their cotangents.

    Attributes:
        substitutes: for each result, a pair: whether there is a substitute, and the substitute.
    """

    def __init__(self, substitutes: Sequence[tuple[bool, Any]]) -> None:
        self.substitutes = substitutes

    @classmethod
    def of(cls, out: Any, ctx: Context) -> _Absent:
        """From the result of `forward` and its marks on the context."""
        substitutes: list[tuple[bool, Any]] = []
        for x in as_tuple(out):
            is_array = hasattr(x, "dtype")
            is_absent = is_array and (not is_inexact(x.dtype) or any(x is y for y in ctx._marked))
            zero = np.zeros(x.shape, x.dtype) if is_absent and ctx._materializes else None
            substitutes.append((is_absent, zero))
        return cls(substitutes)

    def replaced(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """Cotangents or tangents of the results, with substitutes for absent ones."""
        if len(items) != len(self.substitutes):
            return items
        return tuple(s if is_absent else x for x, (is_absent, s) in zip(items, self.substitutes, strict=True))


class _Static:
    """Static information about a call for the backward half of the rule, besides the values saved on the context.

    Attributes:
        kinds: the class of each saved leaf on concrete values; None if `forward` was traced.
        absent: the results without derivative.
        wanted: the gradients to return.
    """

    def __init__(self, kinds: tuple[type, ...] | None, absent: _Absent, wanted: Wanted) -> None:
        self.kinds = kinds
        self.absent = absent
        self.wanted = wanted


# Black boxes


class _Learned(NamedTuple):
    """The outcome of a trial run of `forward`.

    Attributes:
        code: the black box that runs it; returns a number, the results, then the arrays saved on the context.
        structure: structure of the result.
        left: structure of the values saved on the context.
        sources: for each leaf of these, where it comes from.
        marked: which results it marked as not differentiable.
        materializes: the argument of `set_materialize_grads`.
    """

    code: Code
    structure: tree.Structure
    left: tree.Structure
    sources: tuple[_Source, ...]
    marked: tuple[int, ...]
    materializes: bool


class _Source(NamedTuple):
    """Where a value saved on a context comes from: an argument, a result, a new value, or a constant.

    Attributes:
        of: "argument", "result", "value" or "constant".
        which: the number of the leaf among arguments or results; the constant.
        kind: its class on concrete values.
    """

    of: str
    which: Any
    kind: type


def _forward(
    function: FunctionClass, needs: tuple[bool, ...], args: tuple[Any, ...], learned: dict[Any, Any]
) -> tuple[Any, Context, tuple[Any, tuple[type, ...]] | None]:
    """Result and context of `forward`; if it is a black box, also a value that shows that it ran, and the classes of
    the values saved on the context.
    """
    ctx = Context(needs)
    try:
        with in_forward():
            return function._forward(ctx, args), ctx, None
    except Exception as error:
        leaves, structure = tree.flatten(args)
        places = [i for i, x in enumerate(leaves) if has_tracer(x)]
        if not places or not _may_be_black.get():
            raise
        reason = _first_line(error)
        failure = error
    tracers = [leaves[i] for i in places]
    key = _key("forward", needs, structure, leaves)
    found = learned.get(key) if key is not None else None
    if found is None:
        examples = [_example(function, x, reason, failure) for x in tracers]
        found = _learn(function, needs, structure, leaves, places, examples, reason)
        # Other values may give other constants.
        if key is not None and not any(s.of == "constant" for s in found.sources):
            _keep(learned, key, found)
    ran, *values = black_box.apply(found.code, tracers)
    count = found.structure.num_leaves
    ctx = Context(needs)
    out = tree.unflatten(found.structure, values[:count])
    remaining = iter(values[count:])
    given = {"argument": leaves, "result": values[:count]}
    left = [
        next(remaining) if s.of == "value" else s.which if s.of == "constant" else given[s.of][s.which]
        for s in found.sources
    ]
    vars(ctx).update(tree.unflatten(found.left, left))
    ctx._marked, ctx._materializes = tuple(values[i] for i in found.marked), found.materializes
    return out, ctx, (ran, tuple(s.kind for s in found.sources))


def _learn(
    function: FunctionClass,
    needs: tuple[bool, ...],
    structure: tree.Structure,
    leaves: Sequence[Any],
    places: Sequence[int],
    examples: Sequence[Any],
    reason: str,
) -> _Learned:
    """Run `forward` once on concrete values, to learn the form of its results."""
    others = [None if has_tracer(x) else x for x in leaves]
    name = f"{function.__name__}.forward{place_of(function.forward)}"

    def run(*arrays: Any) -> tuple[list[Any], Any]:
        given = list(others)
        for i, x in zip(places, arrays, strict=True):
            given[i] = _concrete(x, Tensor)
        ctx = Context(needs)
        out = _called(lambda: function._forward(ctx, tree.unflatten(structure, given)), reason)
        results, out_structure = tree.flatten(out)
        left, left_structure = tree.flatten(ctx.left())
        sources = tuple([_source(x, given, results, name) for x in left])
        own = [x for x, s in zip(left, sources, strict=True) if s.of == "value"]
        marked = tuple(i for i, x in enumerate(results) if any(x is m for m in ctx._marked))
        form = (out_structure, left_structure, sources, marked, ctx._materializes)
        return [np.int8(0), *(_array(x, name) for x in (*results, *own))], form

    def again(*arrays: Any) -> list[Any]:
        results, form = run(*arrays)
        if form != expected:
            raise TypeError(
                f"{name} is Python code that cannot be traced, so what it returns and saves must have the same "
                "structure and types for all arguments; save numbers and arrays only"
            )
        return results

    results, expected = run(*examples)
    return _Learned(Code(name, again, [type_of(x) for x in results], reason), *expected)


def _backward(
    function: FunctionClass,
    needs: tuple[bool, ...],
    left: dict[str, Any],
    static: _Static,
    cotangents: tuple[Any, ...],
    learned: dict[Any, Any],
) -> tuple[Any, ...]:
    """The result of `backward`."""
    try:
        return as_tuple(function.backward(Context(needs).with_left(left), *cotangents))
    except Exception as error:
        # These errors are not caused by tracing.
        if not _may_be_black.get() or isinstance(error, NameError | ImportError):
            raise
        reason = _first_line(error)
    given = (left, cotangents)
    leaves, structure = tree.flatten(given)
    places = [i for i, x in enumerate(leaves) if has_tracer(x)]
    wanted = [t is not None for t in static.wanted.types]
    types = [t for t in static.wanted.types if t is not None]
    kinds = [*(static.kinds or ()), *[Tensor] * len(leaves)]
    key = _key("backward", (needs, static.kinds, tuple(types)), structure, leaves)
    code = learned.get(key) if key is not None else None
    if code is None:
        line = user_line()

        def run(*arrays: Any) -> list[Any]:
            concrete = [_concrete(x, Tensor) if is_plain(x, np.ndarray) else x for x in others]
            for i, x in zip(places, arrays, strict=True):
                concrete[i] = _concrete(x, kinds[i])
            left, cotangents = tree.unflatten(structure, concrete)
            ctx = Context(needs).with_left(left)
            found = _called(lambda: function.backward(ctx, *cotangents), reason)
            gradients = static.wanted.checked(found, wanted, line)
            return [
                np.zeros(t.shape, t.dtype) if g is None else _array(g, name).astype(t.dtype)
                for g, t in zip(gradients, types, strict=True)
            ]

        others = [None if has_tracer(x) else x for x in leaves]
        name = f"{function.__name__}.backward{place_of(function.backward)}"
        code = Code(name, run, types, reason)
        if key is not None:
            _keep(learned, key, code)
    remaining = iter(black_box.apply(code, [leaves[i] for i in places]))
    return static.wanted.rebuilt(iter([next(remaining) if w else None for w in wanted]))


def _ignore(ran: Any) -> None:
    """Keep the dependence on `ran`: saved values are valid only after the code has run and checked their form."""


def _called(call: Callable[[], Any], reason: str) -> Any:
    """The result of the user's code for concrete values."""
    token = in_black_box.set(True)
    try:
        with no_grad(), recording_in(None):
            return call()
    except Exception as error:
        error.add_note(f"  It was given concrete values, because it could not be traced: {reason}")
        raise
    finally:
        in_black_box.reset(token)


def _source(x: Any, arguments: Sequence[Any], results: Sequence[Any], name: str) -> _Source:
    """Where a value that `forward` saved on its context comes from."""
    for of, items in (("argument", arguments), ("result", results)):
        for index, y in enumerate(items):
            if x is y:
                return _Source(of, index, type(x))
    if is_plain(x, Tensor | np.ndarray | np.generic | int | float | complex):
        return _Source("value", None, type(x))
    if isinstance(x, CONSTANT):
        return _Source("constant", x, type(x))
    raise TypeError(
        f"{name} cannot be traced, and saves an object of type {type(x).__name__}, which a traced program cannot pass "
        "from forward to backward; save arrays and numbers, and create such objects again in backward"
        f"{at_line(user_line())}"
    )


def _concrete(x: Any, kind: type) -> Any:
    """A value of a program in the class that user code expects."""
    if issubclass(kind, np.ndarray | np.generic):
        return x
    if issubclass(kind, int | float | complex):
        return kind(np.asarray(x).item())
    return Tensor.of(np.array(x))


def _array(x: Any, name: str) -> Any:
    """A value that user code returned, as a new array."""
    array = np.array(x.array if isinstance(x, Tensor) else x)
    try:
        type_of(array)
    except TypeError:
        raise TypeError(
            f"{name} returned or saved {type(x).__name__}, which is not an array of numbers{at_line(user_line())}"
        ) from None
    return array[()]


def _example(function: FunctionClass, tracer: Tracer, reason: str, failure: Exception) -> Any:
    """A value for a trial run of `forward`."""
    found = example_of(tracer)
    if found is not None:
        return found
    if function.trial_value is not None:
        return np.full(tracer.shape, function.trial_value, tracer.dtype)[()]
    raise TypeError(
        f"{function.__name__}.forward cannot be traced, and there are no current values to run it on, which would "
        f"show the shapes of its results. Write it with NumPy functions, or set the class attribute trial_value to a "
        f"number that it accepts{at_line(user_line())}\n  Why it cannot be traced: {reason}"
    ) from failure


def _key(what: str, more: Any, structure: tree.Structure, leaves: Sequence[Any]) -> Hashable | None:
    """A key that identifies a kind of call of a black box; None if there is none."""
    key = (what, more, structure, *((x.type, None) if isinstance(x, Tracer) else (type(x), x) for x in leaves))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _keep(learned: dict[Any, Any], key: Hashable, found: Any) -> None:
    """Remember the outcome of a trial run, for a limited number of kinds of calls."""
    if len(learned) >= _MOST_KINDS:
        learned.clear()
    learned[key] = found


def _first_line(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
