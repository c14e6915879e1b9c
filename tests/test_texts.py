"""The text of a traced value: what `print` shows, and guards where code goes on with it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.core.trace import TracerLeak
from ftrans.core.witness import ConcretizationError

X = np.array([1.0, 2.0])
NAMES = {"2": 20.0, "2.0": 20.0, "2.00": 20.0, "n=2": 20.0}

# What makes a number of the text of a number.
READERS: dict[str, Callable[[Any], Any]] = {
    "digits": lambda x: float(f"{x:.3f}"),
    "rounded": lambda x: int(f"{x:.0f}"),
    "format": lambda x: float(format(x, "e")),
    "without a specification": lambda x: float(f"{x}"),
    "method": lambda x: float("{:.1f}".format(x)),  # noqa: UP032 - what is tested
    "percent d": lambda x: int("%d" % x),  # noqa: UP031 - what is tested
    "key": lambda x: NAMES.get(f"{x:.2f}", 1.0),
    "name": lambda x: NAMES.get(f"n={x:.0f}", 1.0),
    "comparison": lambda x: 3.0 if f"{x}" == "2.0" else 4.0,
    "length": lambda x: len(f"{x:.0f}"),
}
# These are guards in plain calls only.
TEXTS: dict[str, Callable[[Any], Any]] = {
    "str": lambda x: float(str(x)),
    "percent s": lambda x: 3.0 if "%s" % x == "2.0" else 4.0,  # noqa: UP031 - what is tested
    "array_str": lambda x: float(np.array_str(x)),
    "array2string": lambda x: float(np.array2string(x, precision=1)),
    "array_repr": lambda x: len(np.array_repr(x)),
}
POINTS = [2.0, 123.0, -2.0, np.nan, 2.0]


@pytest.mark.parametrize("name", [*READERS, *TEXTS])
def test_what_is_read_from_a_text_is_what_numpy_gives(name: str) -> None:
    read = {**READERS, **TEXTS}[name]
    for x in POINTS:
        if np.isnan(x) and name in ("rounded", "percent d"):
            continue
        wanted = float(read(np.array(x) if name.startswith("array") else np.float64(x)))
        np.testing.assert_equal(ft.grad(lambda y: y * read(y))(x), wanted)
        np.testing.assert_equal(ft.grad(lambda y: ft.grad(lambda z: z * read(z))(y) * y)(x), wanted)


@pytest.mark.parametrize("name", list(READERS))
def test_a_text_in_a_compiled_function_is_a_guard(name: str) -> None:
    read = READERS[name]
    f = ft.jit(lambda x: x * read(x))
    for x in POINTS:
        if not np.isnan(x):
            assert f(x) == x * read(np.float64(x))


def test_values_with_the_same_text_are_one_path() -> None:
    traces = []

    @ft.jit
    def f(x: Any) -> Any:
        traces.append(1)
        return x * int(f"{x:.0f}")

    assert [f(x) for x in (2.25, 1.75, 3.25, 2.0)] == [4.5, 3.5, 9.75, 4.0]
    assert len(traces) == 2


def test_printing_in_a_compiled_function_makes_no_paths() -> None:
    traces = []

    @ft.jit
    def f(x: Any) -> Any:
        traces.append((str(x), repr(x), f"{x!s}", f"{x=}", "%s" % x))  # noqa: UP031 - what is tested
        return x + 1.0

    assert [f(x) for x in (2.0, 3.0)] == [3.0, 4.0]
    shown = "Traced(f64[] = 2.)"
    assert traces == [(shown, shown, shown, f"x={shown}", shown)]


# What makes text that is no guard in compiled functions, and what goes on with it.
SHOWN: dict[str, Callable[[Any], str]] = {
    "str": str,
    "twice": lambda x: str(str(x)),
    "percent s": lambda x: "%s" % x,  # noqa: UP031 - what is tested
    "f-string": lambda x: f"{x!s}",
    "array_str": np.array_str,
    "array2string": np.array2string,
    "added": lambda x: "n=" + str(x) + ".",
    "column": lambda x: str(x).ljust(30),
}
DECISIONS: dict[str, Callable[[str], Any]] = {
    "get": lambda text: {"1.0": 1.0, "2.0": 20.0}.get(text, 0.0),
    "set": lambda text: text in {"2.0"},
    "list": lambda text: text in ["2.0"],
    "contains": lambda text: "e" in text,
    "equal": lambda text: text == "2.0",
    "equal from the left": lambda text: "2.0" == text,  # noqa: SIM300 - what is tested
    "unequal": lambda text: text != "2.0",
    "less": lambda text: text < "2.0",
    "startswith": lambda text: text.startswith("2"),
    "find": lambda text: text.find("."),
    "split": lambda text: text.split("."),
    "strip": lambda text: text.strip("."),
    "isdigit": lambda text: text.isdigit(),
    "element": lambda text: text[0],
    "list of": list,
    "length": len,
    "truth": bool,
}


@pytest.mark.parametrize("shown", list(SHOWN))
@pytest.mark.parametrize("decision", list(DECISIONS))
def test_what_is_only_shown_decides_nothing(shown: str, decision: str) -> None:
    def f(x: Any) -> Any:
        DECISIONS[decision](SHOWN[shown](x))
        return x

    with pytest.raises(ConcretizationError, match=r'(?s)text to print.*test_texts\.py:\d+: .*f"\{x\}"'):
        ft.jit(f)(2.0)
    # Of an element of a batch there is one value to look at.
    np.testing.assert_array_equal(ft.vmap(f)(X), X)


def test_what_is_shown_can_be_written() -> None:
    class Lines:
        """A stream that takes apart what it gets."""

        def __init__(self) -> None:
            self.lines: list[str] = []

        def write(self, text: str) -> int:
            self.lines += text.splitlines(keepends=True)
            return len(text)

    stream, memory, kept = Lines(), io.StringIO(), []

    def f(x: Any) -> Any:
        for out in (stream, memory):
            print(x, file=out)
            print("x =", x, [x], file=out)
        kept.append(pickle.dumps(str(x)))
        return x + 1.0

    assert ft.jit(f)(2.0) == 3.0
    shown = "Traced(f64[] = 2.)"
    assert "".join(stream.lines) == memory.getvalue() == f"{shown}\nx = {shown} [{shown}]\n"
    assert pickle.loads(kept[0]) == shown


@pytest.mark.parametrize("name", ["str", "array_str", "array2string", "percent d"])
def test_what_is_shown_where_no_number_is_known_is_no_number(name: str) -> None:
    read = {**READERS, **TEXTS}[name]
    with pytest.raises((ValueError, TypeError)):
        ft.vmap(lambda x: x * read(x))(np.array([1.0, 2.0]))


def test_an_f_string_says_where_no_number_is_known() -> None:
    def f(x: Any) -> Any:
        assert str.__eq__(f"{x}", "Traced(f64[])")
        return x * float(f"{x:.2f}")

    with pytest.raises(ConcretizationError, match="the text of a traced value") as caught:
        ft.scan(lambda c, _: (f(c), None), 1.0, None, length=2)
    assert "print(x)" in caught.value.__notes__[0]


def test_texts_of_arrays() -> None:
    def f(x: Any) -> Any:
        assert str(x) == f"{x}" == str(X)
        assert np.array_repr(x) == repr(X)
        assert np.array2string(x, separator=", ") == "[1., 2.]"
        with pytest.raises(TypeError, match="one number"):
            format(x, ".2f")
        return np.sum(x)

    ft.grad(f)(X)


def test_dtypes_print_as_themselves() -> None:
    for value, spec in ((np.float32(0.1), ""), (np.int64(7), "03d"), (np.True_, ""), (1.0 + 2.0j, ".1f")):
        (text,) = texts_of(value, spec)
        assert text == format(np.asarray(value)[()], spec)


def texts_of(value: Any, spec: str) -> list[str]:
    found: list[str] = []
    ft.trace(lambda x: (found.append(format(x, spec)), x)[1])(value)
    return found


def test_a_leaked_value_has_no_digits() -> None:
    kept = []
    ft.grad(lambda x: (kept.append(x), x)[1])(1.0)
    assert str(kept[0]) == repr(kept[0]) == "Traced(f64[])"
    with pytest.raises(TracerLeak):
        format(kept[0], ".2f")
