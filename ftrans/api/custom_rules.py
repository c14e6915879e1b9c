"""Functions with user-defined derivative rules: custom_vjp and custom_jvp.

A call inside a trace becomes one equation.  The function and its rules are traced to programs at that moment, because
what they close over is an operand of that equation too.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Concatenate, Generic, Literal, Self, TypeVar, overload

from ..base import tree
from ..base.source import at_line, user_line
from ..base.type_variables import Others, Params
from ..base.type_variables import Result as Returned
from ..control.rules.custom_rule import Derivatives, Rule, custom, with_inputs_returned
from ..control.rules.linear_call import Name
from ..core.trace import current_builder
from . import lending
from .call import call_on_recorded, is_recorded, name_of, type_name
from .rule_arguments import Call, Parameters
from .rule_tracing import Captured, Part, Result, trace_bwd, trace_function, trace_fwd, trace_jvp

Function = Callable[..., Any]
Mode = Literal["reverse", "forward"]
GivenRule = TypeVar("GivenRule", bound=Function)


@overload
def custom_vjp(
    f: Callable[Params, Returned],
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] = (),
) -> CustomRule[Params, Returned]: ...
@overload
def custom_vjp(
    f: None = None,
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] = (),
) -> Callable[[Callable[Params, Returned]], CustomRule[Params, Returned]]: ...
def custom_vjp(
    f: Function | None = None, *, nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> Any:
    """Define the derivative of a function by a rule for reverse mode.

    Give the rule with `f.defvjp(fwd, bwd)`:

    * `fwd(*args) -> (out, residuals)` takes the arguments of `f`, and returns its result and whatever `bwd` needs.
    * `bwd(residuals, cotangent) -> cotangents` returns a tuple with one cotangent per argument, of the same structure
      as the argument; None stands for zero, also within containers.

    The rule works in every mode and order.  Forward mode is the transpose of `bwd`.  If `bwd` is not linear in the
    cotangent, because it clips, for instance, forward mode raises an error, unless you give it a rule, too, with
    `f.defjvp` as in `custom_jvp`.

    In higher orders the rule applies again to the values that a derivative uses.  If only one mode has a rule, these
    values have the derivative of the program of `fwd` instead.

    Arrays and floats among the arguments are traced; Python integers, strings, functions and other objects are passed
    on unchanged.  Only floating-point arrays have cotangents: what `bwd` returns for other arguments is ignored, and
    for other results it gets None.  The rule does not cover values that `f` closes over: the derivative with respect to
    these is the derivative of `f` itself, with its arguments held fixed.  The same holds for non-differentiable and
    keyword-only arguments.

    Args:
        f: the function.
        nondiff_argnums: positions of arguments that have no cotangent.  `bwd` takes them first, before the residuals.
        nondiff_argnames: names of such arguments.

    Returns:
        A function of the same arguments.  Outside a trace it calls `f`, except on tensors that require a gradient and
        on values that JAX traces.

    Raises:
        ValueError: there is no such argument.
        TypeError: in a call, a rule returns something that does not fit, or changes its arguments in place; the message
            names the rule and the argument.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> @ft.custom_vjp
        ... def log1pexp(x):
        ...     return np.log(1 + np.exp(x))
        >>> log1pexp.defvjp(lambda x: (log1pexp(x), x), lambda x, ct: (ct / (1 + np.exp(-x)),))
        >>> ft.grad(log1pexp)(100.0)
        np.float64(1.0)
    """
    return _decorated(f, nondiff_argnums, nondiff_argnames, "reverse")


@overload
def custom_jvp(
    f: Callable[Params, Returned],
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] = (),
) -> CustomRule[Params, Returned]: ...
@overload
def custom_jvp(
    f: None = None,
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] = (),
) -> Callable[[Callable[Params, Returned]], CustomRule[Params, Returned]]: ...
def custom_jvp(
    f: Function | None = None, *, nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> Any:
    """Define the derivative of a function by a rule for forward mode.

    Give the rule with `f.defjvp(rule)`, where `rule(primals, tangents) -> (out, tangent)` takes two tuples with one
    entry per argument, and returns the result of `f` and its tangent; None stands for a zero tangent.  Or give one rule
    per argument with `f.defjvps(rule0, rule1, ...)`, each `(tangent, out, *args) -> tangent`, or None where the
    derivative is zero.

    The rule works in every mode and order.  Reverse mode is the transpose of the rule, which must be linear in the
    tangents, unless you give reverse mode a rule, too, with `f.defvjp` as in `custom_vjp`.

    Other arguments, and values that `f` closes over, are treated as in `custom_vjp`; the tangent of an argument that
    has none is None.

    Args:
        f: the function.
        nondiff_argnums: positions of arguments that have no tangent.  The rule takes them first, before the primals.
        nondiff_argnames: names of such arguments.

    Returns:
        A function of the same arguments.  Outside a trace it calls `f`, except on tensors that require a gradient and
        on values that JAX traces.

    Raises:
        ValueError: there is no such argument.
        TypeError: in a call, a rule returns something that does not fit, or changes its arguments in place; the message
            names the rule and the result.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> @ft.custom_jvp
        ... def log1pexp(x):
        ...     return np.log(1 + np.exp(x))
        >>> log1pexp.defjvps(lambda t, out, x: t / (1 + np.exp(-x)))
        >>> ft.hessian(log1pexp)(0.0)
        np.float64(0.25)
    """
    return _decorated(f, nondiff_argnums, nondiff_argnames, "forward")


def _decorated(f: Function | None, argnums: Any, argnames: Any, preferred: Mode) -> Any:
    if f is None:
        return lambda f: CustomRule(f, argnums, argnames, preferred)
    return CustomRule(f, argnums, argnames, preferred)


class CustomRule(Generic[Params, Returned]):
    """A function with derivative rules; see `custom_vjp` and `custom_jvp`.

    Args:
        f: the function.
        nondiff_argnums: positions of arguments without derivative.
        nondiff_argnames: names of such arguments.
        preferred: the mode whose rule to ask for where none is stated.
        reverse: how to state a rule for reverse mode, for messages; None if that is not for the user to do.
        forward: the same for forward mode.
    """

    def __init__(
        self,
        f: Callable[Params, Returned],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
        preferred: Mode = "reverse",
        reverse: str | None = "{}.defvjp(fwd, bwd)",
        forward: str | None = "{}.defjvp(rule)",
    ) -> None:
        functools.update_wrapper(self, _required_function(f, "what has a derivative rule"))
        self._f = f
        name = name_of(f)
        self._name = Name(name, preferred, reverse and reverse.format(name), forward and forward.format(name))
        self._fwd: Function | None = None
        self._bwd: Function | None = None
        self._jvp: Function | None = None
        self._parameters = Parameters(f, nondiff_argnums, nondiff_argnames)

    def __repr__(self) -> str:
        return f"<{name_of(self._f)} with a derivative rule>"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: CustomRule[Concatenate[Any, Others], Returned], instance: object, owner: type | None = None
    ) -> Callable[Others, Returned]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Give the rule for reverse mode: `fwd(*args) -> (out, residuals)`, `bwd(residuals, cotangent) -> tuple`."""
        self._fwd, self._bwd = _required_function(fwd, "fwd"), _required_function(bwd, "bwd")

    def defjvp(self, rule: GivenRule) -> GivenRule:
        """Give the rule for forward mode: `rule(primals, tangents) -> (out, tangent)`.  Returns the rule."""
        self._jvp = _required_function(rule, "the rule")
        return rule

    def defjvps(self, *rules: Function | None) -> None:
        """Give a rule for forward mode per argument: `(tangent, out, *args) -> tangent`, or None for zero."""
        if self._parameters.held:
            raise TypeError(
                f"defjvps has one rule per argument, but {name_of(self._f)} has arguments without derivative; use "
                f"defjvp{at_line(user_line())}"
            )

        def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...], **keywords: Any) -> tuple[Any, Any]:
            if len(rules) != len(primals):
                raise TypeError(
                    f"defjvps gave {len(rules)} rules, but {name_of(self._f)} was called with {len(primals)} arguments"
                    + at_line(user_line())
                )
            out = self(*primals, **keywords)
            total: Any = None
            for partial, t in zip(rules, tangents, strict=True):
                term = None if partial is None or t is None else partial(t, out, *primals)
                if term is not None:
                    total = term if total is None else tree.map_leaves(lambda a, b: a + b, total, term)
            return out, total

        rule.__name__ = f"defjvps of {name_of(self._f)}"
        self._jvp = rule

    def __call__(self, *args: Params.args, **kwargs: Params.kwargs) -> Returned:
        """Call the function; inside a trace, as one equation with the rule."""
        if current_builder() is None:
            if is_recorded((args, kwargs)):
                return call_on_recorded(self, args, kwargs)
            return lending.called_directly(self._f, *args, **kwargs)
        call = Call.of(self._parameters, args, kwargs)
        if not call.is_differentiated:
            # There is nothing that the rule says.
            return lending.called(self._f, *args, **kwargs)
        frame = next((f for f in _frames.get() if f.function is self and f.call.equals(call)), None)
        if frame is None:
            frame = _Frame(self, call)
            token = _frames.set((*_frames.get(), frame))
            try:
                self._trace(frame)
            finally:
                _frames.reset(token)
        elif frame.rule is None:
            return self._f(*args, **kwargs)
        else:
            frame.recursed = True
        return frame.recorded(call)

    def _trace(self, frame: _Frame) -> None:
        """Trace the function and its rules for a call."""
        call, name = frame.call, self._name
        count = len(call.values)
        primal, frame.result = trace_function(self._f, call)
        # Until it is known what all of the rules capture, one that calls the function meets a stand-in for it.
        frame.captured = Captured(primal)
        provisional = primal.program.derive(("provisional", count, name), lambda: Rule(name, primal.program, count))
        frame.rule = provisional
        parts = self._trace_rules(frame)
        frame.captured = captured = Captured(primal, *parts)
        program = captured.closed(primal, count)
        stated = self._stated(frame, parts)
        # Rules that were traced alike are one object, so that a function traced again gives the same equation.
        key = ("rule", count, name, stated)
        frame.rule = program.derived.get(key)
        if frame.rule is None:
            frame.rule = rule = Rule(name, program, count)
            rule.define(self._stated(frame, self._trace_rules(frame)) if frame.recursed else stated)
            # Random numbers, say, differ when the rules are traced again, and would be those of this call for ever.
            if captured.is_complete:
                program.derived[key] = rule

    def _trace_rules(self, frame: _Frame) -> tuple[Part | None, Part | None, Part | None]:
        """The traced `fwd`, `bwd` and rule for forward mode, where they are given."""
        call, result = frame.call, frame.result
        assert result is not None
        fwd = bwd = jvp = None
        if self._fwd is not None and self._bwd is not None:
            fwd, residuals = trace_fwd(self._f, self._fwd, call, result)
            bwd = trace_bwd(self._f, self._bwd, call, result, residuals)
        if self._jvp is not None:
            jvp = trace_jvp(self._f, self._jvp, call, result)
        return fwd, bwd, jvp

    def _stated(self, frame: _Frame, parts: tuple[Part | None, Part | None, Part | None]) -> Derivatives:
        """The traced rules, as programs that take all that was captured."""
        fwd, bwd, jvp = parts
        count, captured = len(frame.call.values), frame.captured
        stated = Derivatives(None, None, None)
        if fwd is not None and bwd is not None:
            assert frame.result is not None
            residuals = bwd.given - frame.result.differentiable.count(True)
            extra = range(count, count + len(captured.values))
            values = with_inputs_returned(captured.closed(fwd, count), extra)
            stated = stated._replace(fwd=values, bwd=captured.closed(bwd, residuals))
        if jvp is not None:
            stated = stated._replace(jvp=captured.closed(jvp, count))
        return stated


def _required_function(f: Function, what: str) -> Function:
    if not callable(f):
        raise TypeError(f"{what} must be a function, not {type_name(f)}{at_line(user_line())}")
    return f


class _Frame:
    """A function whose rules are being traced for a call.

    Attributes:
        function: the function.
        call: the call.
        result: what the function returned.
        rule: the rule of the equation that a call is recorded as; None as long as the function itself is traced.
        captured: the operands of that behind the arguments.
        recursed: whether a rule called the function.
    """

    def __init__(self, function: CustomRule, call: Call) -> None:
        self.function = function
        self.call = call
        self.result: Result | None = None
        self.rule: Rule | None = None
        self.captured = Captured()
        self.recursed = False

    def recorded(self, call: Call) -> Any:
        """Record a call as one equation; return its result."""
        assert self.rule is not None
        assert self.result is not None
        every = tuple(range(len(self.result.types)))
        operands = [*call.values, *self.captured.values]
        outs = custom.bind_all(operands, {"program": self.rule.primal, "rule": self.rule, "outs": every})
        return self.result.rebuilt(outs)


_frames: ContextVar[tuple[_Frame, ...]] = ContextVar("frames", default=())
