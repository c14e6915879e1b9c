"""Checks of a program's derivatives along one direction and against one cotangent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .derivatives import Arrays, Mode, Vector, coordinates, derivative, derivative_alone, place, run, weights
from .differences import differentiate, irregularity
from .failures import Failure, remainder_text
from .precision import coarsest_unit, widened
from .rounding import FAILURES, parts, spread
from .subject import Settings, Subject

Components = np.ndarray[Any, np.dtype[np.intp]]

_UNIT = float(np.finfo(np.float64).eps)
# Relative tolerance between a derivative in double precision and extrapolated differences.
_RTOL = 1e-6
# How much more than their own estimate differences, and rounding, may be off.
_MARGIN = 10
# Differences with a larger relative uncertainty than this are inconclusive.
_KNOWN = 1e-3
# How closely the two modes agree, relative to the absolute values in their inner products, and values with themselves.
_AGREEMENT = 1e-10
# How many rounding units a derivative in low precision may be off before its own rounding is measured.
_UNITS = 64
# A function that changes by more than this part where its arguments change by rounding is not continuous there.
_CONTINUOUS = 1e-7
# The number of components for which the cause of an irregularity is searched.
_MOST_IRREGULAR = 8
# Parts of the first step: what oscillates in time with one range of steps does not with another.
_OTHER_STEPS = (0.73, 0.41)
# The steps at which remainders are reported.
_SHOWN_STEPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


class Point:
    """The derivatives of a subject along a direction and against a cotangent, both in the subject's own precision.

    Attributes:
        doubts: what could not be checked.
    """

    def __init__(
        self,
        subject: Subject,
        chain: tuple[Mode, ...],
        settings: Settings,
        tangents: Arrays,
        cotangents: Arrays,
    ) -> None:
        self.doubts: list[str] = []
        self._subject, self._chain, self._settings = subject, chain, settings
        self._own_vectors = {"forward": tangents, "reverse": cotangents}
        self._vectors = {mode: [widened(x) for x in xs] for mode, xs in self._own_vectors.items()}
        self._v, self._u = weights(self._vectors["forward"]), weights(self._vectors["reverse"])
        self._values: dict[float, Vector] = {}
        self._count = len(subject.program.outputs)
        self._outs = {mode: self._run(mode, subject.args) for mode in settings.modes}
        self._derivatives = {mode: coordinates(outs[self._count :]) for mode, outs in self._outs.items()}

    def failures(self) -> list[Failure]:
        """The failures of the first check that fails, in each mode."""
        checks = (
            self._by_repetition,
            self._by_differences,
            self._by_inner_products,
            self._by_values,
            self._by_precision,
        )
        for check in checks:
            with np.errstate(all="ignore"):
                found = check()
            if found:
                return found
        return []

    def _run(self, mode: Mode, args: Arrays) -> list[Any]:
        """The values, then the derivative times the vectors of the mode."""
        return run(derivative(self._subject.program, self._subject.active, mode), [*args, *self._vectors[mode]])

    def _derivative(self, mode: Mode, args: Arrays) -> Vector:
        return coordinates(self._run(mode, args)[self._count :])

    def _failure(self, check: str, mode: Mode, text: str, actual: float, expected: float, detail: str = "") -> Failure:
        return Failure(check, (*self._chain, mode), text, float(actual), float(expected), detail)

    def _tolerance(self, size: Any, default: float) -> Any:
        """The accepted error of values of the given size."""
        rtol = default if self._settings.rtol is None else self._settings.rtol
        return (self._settings.atol or 0.0) + rtol * size

    def _rounding(self, f: Callable[[Arrays], Vector]) -> float:
        """How much of a result in double precision may be rounding."""
        subject = self._subject
        (found,) = spread(lambda args: [f(args)], subject.args, subject.active, 2 * _UNIT, self._settings.seed)
        return _MARGIN * found

    # Differences

    def _at(self, h: float) -> Vector:
        """The values at a distance of h along the direction."""
        if h not in self._values:
            subject, steps = self._subject, iter(self._vectors["forward"])
            args = [x + h * next(steps) if a else x for x, a in zip(subject.args, subject.active, strict=True)]
            try:
                self._values[h] = coordinates(run(subject.program, args))
            except FAILURES:
                if h == 0:
                    raise
                self._values[h] = np.full_like(self._at(0.0), np.nan)
        return self._values[h]

    def _values_at(self, args: Arrays) -> Vector:
        return coordinates(run(self._subject.program, args))

    def _by_differences(self) -> list[Failure]:
        """Failures of derivatives that differ from the limit of differences of values."""
        failures: list[Failure] = []
        if "forward" in self._derivatives:
            failures += self._compare(
                "forward",
                self._derivatives["forward"],
                self._at,
                self._values_at,
                lambda args: self._derivative("forward", args),
            )
        if "reverse" in self._derivatives:
            failures += self._compare(
                "reverse",
                np.array([self._v @ self._derivatives["reverse"]]),
                lambda h: np.array([self._u @ self._at(h)]),
                lambda args: np.array([self._u @ self._values_at(args)]),
                lambda args: np.array([self._v @ self._derivative("reverse", args)]),
            )
        return failures

    def _compare(
        self,
        mode: Mode,
        actual: Vector,
        f: Callable[[float], Vector],
        f_at: Callable[[Arrays], Vector],
        derivative_at: Callable[[Arrays], Vector],
    ) -> list[Failure]:
        """Compare a derivative with differences of `f`.

        Args:
            mode: whose derivative it is.
            actual: the derivative.
            f: the function along the direction.
            f_at: the same function, of all arguments.
            derivative_at: computes the derivative, for other arguments.
        """
        differences = differentiate(f)
        for component in np.flatnonzero(differences.bends)[:_MOST_IRREGULAR]:
            reason = self._irregularity(mode, f, int(component))
            if reason is not None:
                return [self._failure("regularity", mode, reason, actual[component], np.nan)]
        expected, error = differences.derivative, _MARGIN * differences.error
        gap, size = np.abs(expected - actual), np.fmax(np.abs(expected), np.abs(actual))
        allowed = self._tolerance(np.abs(expected), _RTOL)
        known = error <= np.maximum(_KNOWN * size, allowed)
        doubtful = np.flatnonzero(~((gap <= allowed + error) & known))
        if not doubtful.size:
            return []
        of_values, of_derivative = self._rounding(f_at), self._rounding(derivative_at)
        error = error + of_values / differences.step + of_derivative
        wrong = np.flatnonzero(~(gap <= allowed + error) | ~np.isfinite(expected))
        if wrong.size:
            wrong = self._still_wrong(wrong, actual, f, of_values, of_derivative)
            if not wrong.size:
                return []
            excess = np.nan_to_num(gap / (size + error), nan=np.inf)
            worst = int(wrong[np.argmax(excess[wrong])])
            return self._wrong(mode, f, worst, actual[worst], expected[worst], differences.error[worst], wrong.size)
        return self._unknown(mode, f, doubtful, actual, error, of_values, of_derivative)

    def _still_wrong(
        self, wrong: Components, actual: Vector, f: Callable[[float], Vector], of_values: float, of_derivative: float
    ) -> Components:
        """The components that are also wrong by differences over other steps."""
        for factor in _OTHER_STEPS:
            again = differentiate(lambda h, factor=factor: f(factor * h) / factor)  # type: ignore[misc]
            error = _MARGIN * again.error + of_values / (factor * again.step) + of_derivative
            allowed = self._tolerance(np.abs(again.derivative), _RTOL) + error
            wrong = wrong[~(np.abs(again.derivative - actual) <= allowed)[wrong]]
            if not wrong.size:
                break
        return wrong

    def _wrong(
        self,
        mode: Mode,
        f: Callable[[float], Vector],
        worst: int,
        actual: float,
        expected: float,
        error: float,
        count: int,
    ) -> list[Failure]:
        is_nan_alone = not np.isfinite(actual) and np.isfinite(expected)
        reason = None if is_nan_alone else self._irregularity(mode, f, worst)
        if reason is not None:
            return [self._failure("regularity", mode, reason, actual, expected)]
        if not np.isfinite(expected):
            self.doubts.append(f"differences of {self._function(mode, worst)} do not converge")
            return []
        relative = abs(actual - expected) / max(abs(expected), 1e-300)
        known = error / max(abs(expected), 1e-300)
        text = (
            f"the derivative of {self._function(mode, worst)} along a random direction is {actual:.9g}, but "
            f"differences converge to {expected:.9g} (relative error {relative:.2g}; the differences are known to "
            f"{known:.0e})"
        )
        if count > 1:
            text += f". {count} components are wrong, of which this is the worst"
        start = f(0.0)[worst]
        remainders = [(h, abs(float(f(h)[worst] - start - h * actual))) for h in _SHOWN_STEPS]
        detail = remainder_text(remainders, 100 * _UNIT * abs(float(start)))
        return [self._failure("differences", mode, text, actual, expected, detail)]

    def _function(self, mode: Mode, component: int) -> str:
        """The function whose derivative a mode gives, in words."""
        if mode == "reverse":
            return "the product of the results with a random cotangent"
        return place(component, self._subject.out_types, self._subject.names)

    def _irregularity(self, mode: Mode, f: Callable[[float], Vector], component: int) -> str | None:
        """Why a component has no derivative here, if that is so."""
        reason = irregularity(f, component)
        if reason is None:
            return None
        if mode == "reverse":
            # One of the results in the product is the cause.
            reasons = ((i, irregularity(self._at, i)) for i in range(min(self._at(0.0).size, 1000)))
            component, reason = next(((i, r) for i, r in reasons if r is not None), (component, reason))
        name = place(component, self._subject.out_types, self._subject.names)
        return f"{name} has no derivative at this point, {reason}. Check at another point"

    def _unknown(
        self,
        mode: Mode,
        f: Callable[[float], Vector],
        doubtful: Components,
        actual: Vector,
        error: Vector,
        of_values: float,
        of_derivative: float,
    ) -> list[Failure]:
        """A failure or doubts if differences agree with a derivative only because they are inconclusive."""
        start = f(0.0)
        unit = max(
            float(np.max(np.abs(start), initial=0)), *(float(np.max(np.abs(x), initial=0)) for x in self._subject.args)
        )
        if of_values > _MARGIN * _CONTINUOUS * unit:
            text = (
                f"{self._function(mode, int(doubtful[0]))} has no derivative at this point, where moving the arguments "
                f"by no more than rounding moves values by {of_values / _MARGIN:.3g}. Check at another point"
            )
            return [self._failure("regularity", mode, text, actual[doubtful[0]], np.nan)]
        for component in doubtful[np.argsort(-error[doubtful])][:_MOST_IRREGULAR]:
            jump = max(abs(f(h)[component] - start[component]) for h in (_SHOWN_STEPS[-1], -_SHOWN_STEPS[-1]))
            if jump > of_values + _CONTINUOUS * unit:
                reason = self._irregularity(mode, f, int(component))
                if reason is not None:
                    return [self._failure("regularity", mode, reason, actual[component], np.nan)]
        size = np.abs(actual[doubtful])
        rounding = of_derivative + 16 * _UNIT * np.abs(start[doubtful])
        vague = doubtful[(size > rounding) & (error[doubtful] > _KNOWN * _MARGIN * size)]
        if vague.size:
            worst = int(vague[0])
            self.doubts.append(
                f"the derivative of {self._function(mode, worst)} along a random direction is {actual[worst]:.6g}, "
                f"which differences know only to {error[worst]:.1g}: the value changes little against its rounding, or "
                "irregularly"
            )
        return []

    # The modes against each other, and the values against themselves

    def _by_inner_products(self) -> list[Failure]:
        """A failure if reverse mode is not the transpose of forward mode: <J^T u, v> = <u, J v>."""
        if len(self._derivatives) < 2:
            return []
        pushed, pulled = self._derivatives["forward"], self._derivatives["reverse"]
        forward, reverse = self._u @ pushed, self._v @ pulled
        size = np.abs(self._u) @ np.abs(pushed) + np.abs(self._v) @ np.abs(pulled)
        gap, allowed = abs(forward - reverse), self._tolerance(size, _AGREEMENT)
        if gap <= allowed or not np.isfinite(size):
            return []
        rounding = self._rounding(lambda args: np.array([self._u @ self._derivative("forward", args)]))
        rounding += self._rounding(lambda args: np.array([self._v @ self._derivative("reverse", args)]))
        if gap <= allowed + rounding + _MARGIN * _UNIT * size:
            return []
        text = (
            f"it is not the transpose of forward mode: <J^T u, v> is {reverse:.12g}, but <u, J v> is {forward:.12g} "
            f"for random u and v (they differ by a part of {gap / size:.1e})"
        )
        return [self._failure("inner product", "reverse", text, float(reverse), float(forward))]

    def _by_values(self) -> list[Failure]:
        """Failures of derivative programs whose values are not those of the program."""
        failures = []
        expected = self._at(0.0)
        for mode, outs in self._outs.items():
            actual = coordinates(outs[: self._count])
            gap = np.abs(actual - expected)
            allowed = _AGREEMENT * np.max(np.abs(expected), initial=0)
            if np.all(gap <= allowed) or np.all(gap <= allowed + self._rounding(self._values_at)):
                continue
            worst = int(np.argmax(gap))
            text = (
                f"while it is differentiated, {place(worst, self._subject.out_types, self._subject.names)} is "
                f"{actual[worst]:.9g}, but without derivatives it is {expected[worst]:.9g}: a derivative rule computes "
                "another function"
            )
            failures.append(self._failure("value", mode, text, actual[worst], expected[worst]))
        return failures

    # The program's own precision

    def _by_precision(self) -> list[Failure]:
        """Failures of derivatives that, in the precision of the program, are not those in double precision."""
        own = self._subject.own
        if own is None:
            return []
        failures = []
        for mode, outs in self._outs.items():
            program = derivative_alone(own, self._subject.active, mode)
            failure = self._compare_precisions(mode, program, outs[self._count :])
            failures += [] if failure is None else [failure]
        return failures

    def _compare_precisions(self, mode: Mode, program: Any, outs: Arrays) -> Failure | None:
        own = self._subject.own
        assert own is not None
        unit = coarsest_unit(own)
        args = [*self._subject.own_args, *self._own_vectors[mode]]
        results = run(program, args)
        actual, expected = parts(results), parts(outs)
        sizes = [float(np.max(np.abs(x), initial=0)) for x in expected]
        gaps = [float(np.max(np.abs(x - y), initial=0)) for x, y in zip(actual, expected, strict=True)]
        allowed = [_UNITS * unit * size + self._tolerance(size, 0.0) for size in sizes]
        if all(g <= a for g, a in zip(gaps, allowed, strict=True)):
            return None
        active = (*self._subject.active, *(True for _ in self._own_vectors[mode]))
        moved = spread(lambda args: parts(run(program, args)), args, active, unit, self._settings.seed)
        values, exact = coordinates(run(own, self._subject.own_args)), self._at(0.0)
        # Values that are off by a part let derivatives be off by as much.
        part = float(np.max(np.abs(values - exact), initial=0) / max(np.max(np.abs(exact), initial=0), 1e-300))
        part = part if np.isfinite(part) else 0.0
        limits = [a + _MARGIN * m + 4 * part * s for a, m, s in zip(allowed, moved, sizes, strict=True)]
        wrong = [i for i, (g, limit) in enumerate(zip(gaps, limits, strict=True)) if not g <= limit]
        if not wrong:
            return None
        worst = int(np.argmax(np.abs(actual[wrong[0]] - expected[wrong[0]])))
        given, should = actual[wrong[0]][worst], expected[wrong[0]][worst]
        text = (
            f"in {np.asarray(results[wrong[0]]).dtype.name} it has an element {given:.6g}, which is {should:.6g} in "
            "float64: they differ by more than rounding explains"
        )
        return self._failure("precision", mode, text, given, should)

    # Repetition

    def _by_repetition(self) -> list[Failure]:
        """Failures of derivatives that differ when they are computed again."""
        failures = []
        for mode, before in self._derivatives.items():
            gap = float(np.max(np.abs(self._derivative(mode, self._subject.args) - before), initial=0))
            if gap > self._settings.nondet_tol:
                text = (
                    f"computed twice at the same point, the derivative differs by {gap:.3g}, which is more than "
                    f"nondet_tol={self._settings.nondet_tol:g}"
                )
                failures.append(self._failure("determinism", mode, text, gap, 0.0))
        return failures
