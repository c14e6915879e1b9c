"""Code in a traced function that waits for floating-point errors: `np.errstate`, `np.seterr`, filters of warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.base import error_modes
from ftrans.core.witness import ConcretizationError


def in_errstate(x: Any) -> Any:
    try:
        with np.errstate(divide="raise"):
            return 1.0 / x
    except FloatingPointError:
        return 7.0 * x


def by_seterr(x: Any) -> Any:
    old = np.seterr(divide="raise", over="ignore")
    try:
        return 1.0 / x
    except FloatingPointError:
        return 7.0 * x
    finally:
        np.seterr(**old)


def decorated(x: Any) -> Any:
    try:
        return np.errstate(divide="raise")(lambda y: 1.0 / y)(x)
    except FloatingPointError:
        return 7.0 * x


def by_call(x: Any) -> Any:
    seen: list[Any] = []
    with np.errstate(divide="call", call=lambda *error: seen.append(error)):
        y = 1.0 / x
    return 7.0 * x if seen else y


def by_warning(x: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return 1.0 / x
    except RuntimeWarning:
        return 7.0 * x


def by_record(x: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = 1.0 / x
    return 7.0 * x if caught else y


def catching(*filters: Any, **options: Any) -> Callable[[Any], Any]:
    """A function that catches what becomes an error by some filters, each the arguments of a setting."""

    def by_filters(x: Any) -> Any:
        try:
            with warnings.catch_warnings(**options):
                for action, *rest in filters:
                    warnings.filterwarnings(action, *rest)
                return 1.0 / x
        except RuntimeWarning:
            return 7.0 * x

    return by_filters


def recording(*filters: Any) -> Callable[[Any], Any]:
    """A function that asks whether anything has been recorded."""

    def by_filters(x: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.resetwarnings()
            for action, *rest in filters:
                warnings.filterwarnings(action, *rest)
            y = 1.0 / x
        return 7.0 * x if caught else y

    return by_filters


def set_later(x: Any) -> Any:
    """The filters of one block change in place."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = 0.0 * np.exp(x)
            warnings.simplefilter("error")
            return y + 1.0 / x
    except RuntimeWarning:
        return 7.0 * x


def without_a_block(x: Any) -> Any:
    kept = warnings.filters[:]
    try:
        warnings.filterwarnings("error")
        return 1.0 / x
    except RuntimeWarning:
        return 7.0 * x
    finally:
        warnings.filters[:] = kept


def by_showwarning(x: Any) -> Any:
    seen: list[Any] = []
    shown = warnings.showwarning
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.showwarning = lambda *args, **kwargs: seen.append(args)
        y = 1.0 / x
    assert warnings.showwarning is shown
    return 7.0 * x if seen else y


def around_an_inner_function(x: Any) -> Any:
    try:
        with np.errstate(divide="raise"):
            return ft.value_and_grad(lambda y: 1.0 / y)(x)[0]
    except FloatingPointError:
        return 7.0 * x


FUNCTIONS = [
    in_errstate, by_seterr, decorated, by_call, by_warning, by_record, around_an_inner_function, set_later,
    without_a_block, by_showwarning, recording(), recording(("default",)), recording(("once", "", RuntimeWarning)),
    catching(("error", "divide by zero.*"), ("ignore", "overflow.*")),
    catching(("error", "", RuntimeWarning), ("ignore", "invalid value")),
    catching(("ignore", "overflow.*"), ("error", "divide by zero.*"), ("default", "", DeprecationWarning)),
    catching(("error",), ("ignore", "", Warning, "some_module"), ("ignore", "", Warning, "", 1_000_000)),
]  # fmt: skip
USES: dict[str, Callable[[Any], Any]] = {
    "grad": ft.grad,
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1],
    "jacobian": ft.jacobian,
    "inside of another": lambda f: ft.grad(lambda x: ft.value_and_grad(f)(x)[0]),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
    "inner jit": lambda f: ft.grad(ft.jit(f)),
}


@pytest.mark.parametrize("use", list(USES))
@pytest.mark.parametrize("f", FUNCTIONS)
def test_what_waits_for_an_error_gets_it(f: Any, use: str) -> None:
    derivative = USES[use](f)
    with warnings.catch_warnings():
        # What only records or counts an error goes on with it, and the program has it again when it runs.
        warnings.simplefilter("ignore")
        assert derivative(0.0) == 7.0
    assert derivative(2.0) == -0.25


@pytest.mark.parametrize("f", FUNCTIONS)
def test_compiled_code_cannot_wait_for_errors(f: Any) -> None:
    for use in (ft.jit(f), ft.jit(ft.grad(f)), ft.jit(lambda x: x + ft.grad(f)(1.0 * x))):
        with pytest.raises(
            ConcretizationError, match=r"(?s)(errstate|filter of warnings|record=True).*is compiled.*np\.where.*ft.*jit"
        ):
            use(2.0)


def test_where_there_is_no_one_value_to_look_at() -> None:
    for use in (
        lambda: ft.vmap(in_errstate)(np.ones(2)),
        lambda: ft.scan(lambda c, _: (in_errstate(c), None), 1.0, None, length=2),
        lambda: ft.while_loop(lambda c: c < 1.0, in_errstate, 0.5),
    ):
        with pytest.raises(ConcretizationError, match=r"(?s)errstate\(divide='raise'\) asks.*(numpy|np)\.where"):
            use()


def test_errors_from_before_the_block_do_not_belong_to_it() -> None:
    def f(x: Any) -> Any:
        y = 1.0 / x
        try:
            with np.errstate(divide="raise"):
                z = np.exp(-y) + x
                if y > 0.0:
                    z = z + 1.0
        except FloatingPointError:
            z = 7.0 * x
        return z

    with np.errstate(all="ignore"):
        assert ft.jvp(f, (0.0,), (0.0,))[0] == f(np.float64(0.0)) == 1.0


def test_modes_that_only_ignore_are_for_compiled_code_too() -> None:
    def f(x: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return 1.0 / x

    with np.errstate(all="raise"):
        assert ft.jit(f)(0.0) == np.inf


@pytest.mark.parametrize("record", [False, True])
def test_filters_that_only_ignore_are_for_compiled_code_too(record: bool) -> None:
    def f(x: Any) -> Any:
        with warnings.catch_warnings(record=record):
            warnings.resetwarnings()
            warnings.simplefilter("error", DeprecationWarning)
            if record:
                warnings.simplefilter("ignore", RuntimeWarning)
            else:
                warnings.filterwarnings("ignore", message="divide by zero")
            return 1.0 / x

    assert ft.jit(f)(0.0) == np.inf


def test_a_line_warns_once_as_with_numpy() -> None:
    derivative = ft.grad(lambda x: np.exp(x) + 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for x in (1000.0, 2000.0, 3000.0):
            derivative(x)
    assert len(caught) == 1
    assert "overflow encountered in `derivative = ft.grad(" in str(caught[0].message)


def test_an_error_that_nobody_waits_for_is_raised_in_the_function() -> None:
    reached = []

    def f(x: Any) -> Any:
        with np.errstate(divide="raise"):
            y = 1.0 / x
        reached.append(True)
        return y

    with pytest.raises(FloatingPointError, match="divide by zero"):
        ft.grad(f)(0.0)
    assert not reached
    assert ft.grad(f)(2.0) == -0.25


def test_a_numpy_that_keeps_its_modes_elsewhere_is_asked_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_modes, "_variable_of_modes", None)
    monkeypatch.setattr(error_modes, "current_modes", error_modes._asked)
    for f in (in_errstate, by_seterr, decorated):
        assert ft.grad(f)(0.0) == 7.0
        assert ft.grad(f)(2.0) == -0.25
