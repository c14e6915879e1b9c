"""Results of a check of derivatives: failures, the equations that cause them, and the error message."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from textwrap import indent
from typing import NamedTuple

from ..base.displayed import Displayed
from ..base.source import Line, at_line

_SHOWN_REMAINDERS = 5
_SHOWN_CULPRITS = 4


class Failure(NamedTuple):
    """One way in which a derivative is wrong.

    Attributes:
        check: which check failed: "differences", "inner product", "value", "precision", "jacobian", "regularity" or
            "determinism".
        chain: the modes whose derivative is wrong, the first applied first: `("forward",)`, or `("forward", "reverse")`
            for the reverse-mode derivative of the forward-mode derivative.
        text: what is wrong, with the numbers.
        actual: the computed derivative.
        expected: its correct value.
        detail: further numbers.
    """

    check: str
    chain: tuple[str, ...]
    text: str
    actual: float
    expected: float
    detail: str = ""

    @property
    def order(self) -> int:
        """The order of the derivative that is wrong."""
        return len(self.chain)

    @property
    def relative_error(self) -> float:
        """Relative error of the derivative."""
        return abs(self.actual - self.expected) / max(abs(self.expected), 1e-300)

    def describe(self) -> str:
        """The failure in words."""
        return f"{modes_text(self.chain)}: {self.text}" if self.chain else self.text


class Culprit(NamedTuple):
    """An equation whose own derivative is wrong.

    Attributes:
        operation: name of the primitive, or of the function whose rule it is.
        line: the user's line that asked for it.
        failure: what a check of this equation by itself found.
        rule_line: a line of the rule, where the user wrote it.
        note: what to know of this operation.
        tolerance: for a solver, the call with its tolerances, up to which its results are right.
    """

    operation: str
    line: Line | None
    failure: Failure
    rule_line: Line | None = None
    note: str = ""
    tolerance: str = ""

    def describe(self) -> str:
        """The equation, its line, and the numbers."""
        rule = "" if self.rule_line is None else f"\n  its rule is at {self.rule_line.describe()}"
        note = f"\n  {self.note or self.advice()}" if self.note or self.tolerance else ""
        numbers = indent(self.failure.describe(), "  ")
        detail = f"\n{indent(self.failure.detail, '    ')}" if self.failure.detail else ""
        return f"{self.operation}{at_line(self.line)}{rule}{note}\n{numbers}{detail}"

    def advice(self) -> str:
        """What to do about a derivative that is right up to a solver's tolerance."""
        return (
            f"{self.tolerance} is right up to its tolerance only, and so is its derivative: pass a larger rtol to "
            "check_grads, such as ten times the solver's, or a smaller one to the solver"
        )


class GradientError(AssertionError, Displayed):
    """A derivative is wrong, or the function is not differentiable at the point where it was checked.

    Attributes:
        failures: the checks that failed.
        culprits: the equations whose own derivatives are wrong.
    """

    def __init__(self, message: str, failures: Sequence[Failure], culprits: Sequence[Culprit]) -> None:
        super().__init__(message)
        self.failures = tuple(failures)
        self.culprits = tuple(culprits)


class Report(NamedTuple):
    """The result of a check: whether it passed, and if not, why.

    Attributes:
        name: name of the function.
        failures: the checks that failed.
        culprits: the equations whose own derivatives are wrong.
        doubts: checks that were inconclusive.
    """

    name: str
    failures: tuple[Failure, ...]
    culprits: tuple[Culprit, ...]
    doubts: tuple[str, ...]

    def passed(self, check: str, raise_exception: bool, stacklevel: int) -> bool:
        """Whether no check failed; a failure is an error if `raise_exception`, and a doubt is a warning of `check`."""
        if self.failures and raise_exception:
            raise self.error()
        if self.doubts and not self.failures:
            more = f" (and {len(self.doubts) - 1} more)" if len(self.doubts) > 1 else ""
            text = f"{check} could not check all of {self.name}: {self.doubts[0]}{more}"
            warnings.warn(text, stacklevel=stacklevel + 1)
        return not self.failures

    def error(self) -> GradientError:
        """The failures as an error."""
        kinds = {f.check for f in self.failures}
        what = f"the derivative of {self.name} is wrong"
        if kinds == {"regularity"}:
            what = f"{self.name} has no derivative here"
        elif kinds == {"determinism"}:
            what = f"{self.name} gives different results each time"
        elif self.culprits and all(c.tolerance for c in self.culprits):
            what = f"the derivative of {self.name} differs from finite differences, as a solver's tolerance lets it"
        culprits = self.culprits[:_SHOWN_CULPRITS]
        # The numbers that say most are those of the operation.
        details = "" if culprits else self.failures[0].detail
        lines = [what, *(indent(f.describe(), "  ") for f in self.failures)]
        lines += [indent(details, "    ")] if details else []
        if culprits:
            is_irregular = all(c.failure.check == "regularity" for c in culprits)
            is_wrong = not is_irregular and not all(c.tolerance for c in culprits)
            lines.append("the operation whose own derivative is wrong:" if is_wrong else "where it comes from:")
            lines += [indent(c.describe(), "  ") for c in culprits]
            lines += [f"  and {len(self.culprits) - len(culprits)} more"] if len(self.culprits) > len(culprits) else []
        elif not kinds <= {"regularity", "determinism"} and any(f.chain for f in self.failures):
            lines.append(
                "each operation passes these checks by itself, with the values that it has here: look for rules that "
                "are right only up to a tolerance (a solver's: pass rtol), or values where differences are unreliable"
            )
        return GradientError("\n".join(lines), self.failures, self.culprits)


def modes_text(chain: Sequence[str]) -> str:
    """`reverse over forward mode` for the modes of a derivative, the first applied first."""
    return " over ".join(reversed(chain)) + " mode"


def remainder_text(remainders: Sequence[tuple[float, float]], floor: float) -> str:
    """The remainders of a Taylor expansion to first order, and how fast they shrink.

    Args:
        remainders: (step, remainder), from large steps to small ones.
        floor: remainders below it are rounding.
    """
    seen = [(h, r) for h, r in remainders if r > floor and r < float("inf")][:_SHOWN_REMAINDERS]
    if len(seen) < 2:
        return ""
    lines = [f"the Taylor remainder |f(x + h v) - f(x) - h J v| shrinks like h^{_order(seen):.2f}, not like h^2:"]
    lines += [f"  h = {h:.0e}  {r:.3e}" for h, r in seen]
    return "\n".join(lines)


def _order(remainders: Sequence[tuple[float, float]]) -> float:
    (h, r), (finer, s) = remainders[-2:]
    return math.log(r / s) / math.log(h / finer)
