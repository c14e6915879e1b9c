"""What a program is found by tells apart what Python holds to be equal: static arguments, dict keys, attributes."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import enum
import functools
from collections.abc import Callable, Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from samples import SAMPLES

import ftrans as ft
from ftrans import autograd, nn
from ftrans.base.keys import exact, exact_number
from ftrans.core.program import programs_in


@dataclasses.dataclass(frozen=True)
class Setting:
    value: Any


@dataclasses.dataclass(frozen=True)
class WithNote(Setting):
    note: str = dataclasses.field(default="", compare=False)


class Pair(NamedTuple):
    first: Any
    value: Any


class Mode(enum.Enum):
    ZERO = 0.0
    ONE = 1


class Level(enum.IntEnum):
    ONE = 1


class Named:
    """Equality that nobody can look into."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


NUMBERS = [
    0, 0.0, -0.0, False, 1, 1.0, True, np.float32(1), np.float64(1), np.int64(1), np.bool_(True), 1 + 0j,
    complex(1, -0.0), 0j, complex(-0.0, 0.0), float("nan"), -float("nan"), Fraction(1), Decimal("1"), Decimal("1.0"),
    np.float64(-0.0), Mode.ZERO, Mode.ONE, Level.ONE, "1", b"1", None,
]  # fmt: skip
WRAPPERS: dict[str, Callable[[Any], Hashable]] = {
    "itself": lambda x: x,
    "tuple": lambda x: (x,),
    "nested": lambda x: ((x, 2), "a"),
    "named tuple": lambda x: Pair(2, x),
    "set": lambda x: frozenset([x]),
    "dataclass": Setting,
    "subclass": WithNote,
    "dataclass in a set": lambda x: frozenset([(Setting(x),)]),
}


@pytest.mark.parametrize("wrapper", list(WRAPPERS))
def test_what_is_not_the_same_has_another_key(wrapper: str) -> None:
    wrap = WRAPPERS[wrapper]
    keys = [exact(wrap(x)) for x in NUMBERS]
    assert len(set(keys)) == len(NUMBERS)
    assert keys == [exact(wrap(x)) for x in NUMBERS]


def test_containers_of_one_kind_are_not_of_another() -> None:
    values = [
        (1, 2),
        Pair(1, 2),
        frozenset([1, 2]),
        range(1, 3),
        range(1, 3, 1),
        Setting((1, 2)),
        range(0),
        range(5, 5),
    ]
    assert len({exact(x) for x in values}) == len(values) - 1
    assert exact(range(0, 3, 2)) != exact(range(0, 4, 2))
    assert exact(functools.partial(abs)) != exact(functools.partial(abs))


def test_what_equality_leaves_out_is_left_out() -> None:
    """Fields that are not compared, and objects with an equality of their own: their class has said what counts."""
    assert exact(WithNote(1, "a")) == exact(WithNote(1, "b"))
    assert exact(Named("a", 0.0)) == exact(Named("a", -0.0))
    assert exact(Named("a", 0.0)) != exact(Named("b", 0.0))


def value_with_more(base: type, slot: bool = False, compares: bool = False) -> Callable[..., Any]:
    """Values of a subclass with an attribute, which the equality of the base leaves out."""
    names: dict[str, Any] = {"__slots__": ("more",)} if slot else {}
    if compares:
        names["__eq__"] = lambda a, b: base.__eq__(a, b) and a.more == b.more
        names["__hash__"] = base.__hash__
    cls = type("WithMore", (base,), names)

    def make(value: Any, more: Any) -> Any:
        made = cls(*value) if issubclass(base, Fraction | datetime.date) else cls(value)
        made.more = more
        return made

    return make


VALUES_WITH_MORE = [
    (float, 1.0), (complex, 1.0), (int, 1), (str, "a"), (tuple, (1, 2)), (frozenset, (1, 2)), (Decimal, "1"),
    (Fraction, (1, 2)), (np.float64, 1.0), (np.int32, 1), (bytes, b"a"), (datetime.datetime, (2024, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("how", [{}, {"slot": True}, {"compares": True}])
@pytest.mark.parametrize(("base", "value"), VALUES_WITH_MORE)
def test_what_a_subclass_adds_to_a_value(base: type, value: Any, how: dict[str, bool]) -> None:
    if "slot" in how and base in (int, tuple, bytes):
        # Their memory has no room for slots.
        how = {}
    make = value_with_more(base, **how)
    keys = [exact(make(value, more)) for more in (1, 2, "a", None)]
    assert len(set(keys)) == 4
    assert keys[0] == exact(make(value, 1))
    assert exact_number(make(value, 1)) is None
    f = ft.jit(lambda x, s: x * s.more, static_argnums=1)
    assert [f(1.0, make(value, more)) for more in (2.0, 3.0, 2.0)] == [2.0, 3.0, 2.0]


def test_what_a_subclass_adds_need_not_be_hashable() -> None:
    make = value_with_more(float)
    one, other = make(1.0, [2.0]), make(1.0, [3.0])
    f = ft.jit(lambda x, s: x * s.more[0], static_argnums=1)
    assert [f(1.0, s) for s in (one, other, one)] == [2.0, 3.0, 2.0]


def test_times_that_are_equal_and_not_the_same() -> None:
    zone = lambda hours, name: datetime.timezone(datetime.timedelta(hours=hours), name)  # noqa: E731
    times = [
        datetime.datetime(2024, 10, 27, 2, 30),
        datetime.datetime(2024, 10, 27, 2, 30, fold=1),
        datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zone(0, "A")),
        datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zone(0, "B")),
        datetime.datetime(2024, 10, 27, 3, 30, tzinfo=zone(1, "A")),
        datetime.time(2, 30),
        datetime.time(2, 30, fold=1),
    ]
    assert len({exact(x) for x in times}) == len(times)
    assert [exact(copy.copy(x)) for x in times] == [exact(x) for x in times]


def test_the_hash_of_an_unhashable_value_says_so() -> None:
    with pytest.raises(TypeError, match="a static argument of jit"):
        ft.jit(lambda x, s: x, static_argnums=1)(1.0, Setting([1]))


def of_sign(setting: Any) -> float:
    return float(np.copysign(1.0, setting.value)) + 10.0 * isinstance(setting.value, bool)


@pytest.mark.filterwarnings("ignore:nn.jit traces")
@pytest.mark.parametrize("make", [Setting, lambda v: Pair(0, v)])
def test_static_arguments_of_compiled_functions(make: Any) -> None:
    model = nn.Linear(1, 1)
    plain = ft.jit(lambda x, s: x * of_sign(s), static_argnums=1)
    named = ft.jit(lambda x, *, s: x * of_sign(s), static_argnames="s")
    of_module = nn.jit(lambda m, x, s: x * of_sign(s), static_argnums=2)
    for value in (0.0, -0.0, 1, True, 1.0, -1):
        s = make(value)
        assert plain(1.0, s) == named(1.0, s=s) == of_module(model, np.float64(1.0), s) == of_sign(s)


def test_keys_of_dicts_among_arguments() -> None:
    @ft.jit
    def f(d: dict[Any, Any]) -> Any:
        return {k: v * (np.copysign(1.0, k) + 10.0 * isinstance(k, bool)) for k, v in d["inner"][0].items()}

    for key in (1, True, 1.0, 0.0, -0.0, 0, False):
        ((found, value),) = f({"inner": [{key: 1.0}]}).items()
        assert found.__class__ is key.__class__
        assert value == np.copysign(1.0, key) + 10.0 * isinstance(key, bool)


class Scaled(nn.Module):
    def __init__(self, setting: Any) -> None:
        super().__init__()
        self.setting = setting

    def forward(self, x: Any) -> Any:
        return x * of_sign(self.setting)


@pytest.mark.filterwarnings("ignore:nn.jit traces")
def test_attributes_of_modules() -> None:
    model = Scaled(Setting(0.0))
    f = nn.jit(lambda m, x: m(x))
    for value in (0.0, -0.0, 1, True, float("nan"), -float("nan")):
        model.setting = Setting(value)
        assert f(model, np.float64(1.0)) == of_sign(model.setting)


def test_numbers_of_operations_on_tensors() -> None:
    for value in (0.0, -0.0, 1, 1.0, True, -1.0):
        x = autograd.tensor(np.array([1.0, 2.0]), requires_grad=True)
        np.sum(np.clip(x * 0.0 - 1.0, value, 5.0) + np.copysign(x, np.full_like(x, value)) * x).backward()
        wanted = np.copysign(1.0, value) * 2.0 * np.array([1.0, 2.0])
        np.testing.assert_array_equal(x.grad.numpy(), wanted)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_sign_of_a_zero_in_numpys_arguments(zero: float) -> None:
    """In the trie of programs and in what NumPy's functions fill in."""
    x = np.array([-1.0, 2.0])
    for f in (
        lambda x: np.clip(x, zero, 5.0),
        lambda x: np.pad(x, 1, constant_values=zero),
        lambda x: np.full_like(x, zero) * np.abs(x),
        lambda x: np.where(x > 0, x, zero),
        lambda x: np.nan_to_num(x * np.nan, nan=zero),
        lambda x: np.maximum(-np.abs(x), zero),
        lambda x: np.max(-np.abs(x), initial=zero),
        lambda x: np.heaviside(x * 0.0, zero),
        lambda x: np.interp(x, [5.0, 6.0], [1.0, 2.0], left=zero),
        lambda x: np.select([x > 5.0], [x], default=zero),
    ):
        wanted = f(x)
        for found in (ft.trace(f)(x)(x)[0], ft.jvp(f, (x,), (x,))[0], ft.jit(f)(x)):
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_no_parameter_of_an_equation_is_a_number_with_a_sign_of_zero() -> None:
    """Equations are edges of the trie by the equality of their parameters, which must say all of them."""

    def numbers(x: Any) -> list[Any]:
        return [y for part in x for y in numbers(part)] if isinstance(x, tuple) else [x]

    # Tolerances of solvers, which hold programs, have no sign.
    for sample in SAMPLES:
        for value in sample.params.values() if not any(programs_in(sample.params)) else ():
            assert not any(isinstance(x, float | complex | np.inexact) for x in numbers(value)), sample
