"""What becomes of a row: its value and derivatives against those of the plain function, mode by mode.

The reference is the function itself on plain numbers, of an unpatched package, and differences of its values that are
extrapolated to step zero.  Second derivatives are compared with differences of the first ones.
"""

from __future__ import annotations

import contextlib
import linecache
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ftrans as ft
from ftrans.testing.differences import differentiate

from .row import Row

LIBRARY = str(Path(ft.__file__).parent)
HERE = str(Path(__file__).parent)
# Of derivatives, relative to the largest component; differences say themselves how far they may be off.
TOLERANCE = 1e-6


class Outcome(NamedTuple):
    """What one mode of a row gave.

    Attributes:
        status: "right", "refused", "wrong", "zero" (where the derivative is not), or "unclear", where the
            differences do not converge.
        text: of what is not right, the error or the numbers.
        line: the line of the package at which it was refused.
    """

    status: str
    text: str = ""
    line: str = ""


class Reference(NamedTuple):
    """What the plain function says.

    Attributes:
        value: its value.
        slope: its gradient, by differences of values.
        error: how far each component of that may be off.
    """

    value: Any
    slope: Any
    error: Any


def reference(row: Row) -> Reference:
    """What the function gives without ftrans; its package must not be patched."""
    with _quiet():
        f, x = row.function(), _point(row)
        return Reference(np.asarray(float(f(_argument(x)))), *_gradient_by_differences(f, x))


def patched(rows: Iterable[Row]) -> Any:
    """The patch under which rows are run."""
    return ft.patch(*sorted({package for row in rows for package in row.patched}))


def outcomes(row: Row, plain: Reference) -> dict[str, Outcome]:
    """What each mode of a row gives, where its packages are patched."""
    f, x = row.function(), _point(row)
    direction = np.cos(1.0 + np.arange(x.size)).reshape(x.shape) * _steps(x)

    def moved(h: float) -> Any:
        return np.ravel(ft.grad(f)(_argument(x + h * direction)))

    def differentiated() -> tuple[Any, Any]:
        found = differentiate(moved)
        return found.derivative.reshape(x.shape), found.error.reshape(x.shape)

    def first() -> tuple[Any, Any]:
        return plain.slope, plain.error

    modes: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, Any]]]] = {
        "value": (lambda: ft.value_and_grad(f)(_argument(x))[0], lambda: (plain.value, np.zeros(()))),
        "grad": (lambda: ft.grad(f)(_argument(x)), first),
        "jit(grad)": (lambda: ft.jit(ft.grad(f))(_argument(x)), first),
        "hessian": (
            lambda: np.tensordot(np.asarray(ft.hessian(f)(_argument(x))), direction, x.ndim),
            differentiated,
        ),
        "vmap(grad)": (lambda: ft.vmap(ft.grad(f))(np.stack([x, x]))[1], first),
    }
    with _quiet():
        found = {mode: _compare(compute, expected) for mode, (compute, expected) in modes.items()}
    # Differences of a wrong gradient agree with its derivative.
    return found if found["grad"].status == "right" else found | {"hessian": found["grad"]}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What packages warn of is theirs."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _point(row: Row) -> Any:
    return np.asarray(row.at, dtype=np.float64)


def _argument(x: Any) -> Any:
    """A float where the row has a number."""
    return float(x) if x.ndim == 0 else np.array(x)


def _steps(x: Any) -> Any:
    """How far each element is moved: in proportion to it, so that values keep their sign."""
    return np.where(x == 0, 1.0, np.abs(x))


def _gradient_by_differences(f: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """The gradient at x and how far it may be off, from values alone."""
    slope, error = np.empty_like(x), np.empty_like(x)
    for place in np.ndindex(x.shape):
        step = _steps(x)[place]

        def moved(h: float, place: Any = place, step: Any = step) -> Any:
            at = x.copy()
            at[place] += h * step
            return np.array([float(f(_argument(at)))])

        found = differentiate(moved)
        slope[place], error[place] = found.derivative[0] / step, found.error[0] / step
    return slope, error


def _compare(compute: Callable[[], Any], reference: Callable[[], tuple[Any, Any]]) -> Outcome:
    """What was computed beside the reference, which says how far it may be off itself."""
    try:
        found = np.asarray(compute())
        expected, error = reference()
    except Exception as caught:
        return Outcome("refused", f"{type(caught).__name__}: {str(caught).strip()}", _line_of_package(caught))
    if found.shape != expected.shape:
        return Outcome("wrong", f"shape {found.shape} instead of {expected.shape}")
    size = np.max(np.abs(expected), initial=0.0)
    if not np.all(np.isfinite(expected)) or np.any(error > 1e-3 * size + 1e-7):
        return Outcome("unclear", f"{found} beside {expected} that may be off by {error}")
    if np.all(np.abs(found - expected) <= TOLERANCE * size + 10 * error + 1e-12):
        return Outcome("right")
    return Outcome("wrong" if np.any(found) else "zero", f"{found} instead of {expected}, which may be off by {error}")


def _line_of_package(error: BaseException) -> str:
    """The innermost line that belongs neither to ftrans nor to this collection."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [f for f in frames if not f.filename.startswith((LIBRARY, HERE)) and "/numpy/" not in f.filename]
    if not outside:
        return ""
    last = outside[-1]
    path = last.filename.rpartition("site-packages/")[2]
    return f"{path}:{last.lineno}: {linecache.getline(last.filename, last.lineno or 0).strip()}"


def not_as_said(row: Row, found: dict[str, Outcome]) -> list[str]:
    """What is not as the row says, in words: a mode is right, or refused where the row has a reason."""
    expected = {mode: "refused" if mode in row.reasons else "right" for mode in found}
    return [
        f"{row}, {mode}: {outcome.status} instead of {expected[mode]}: {outcome.text}\n    {outcome.line}"
        for mode, outcome in found.items()
        if outcome.status != expected[mode]
    ]
