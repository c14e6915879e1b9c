"""What `ftrans.base.foreign` takes for granted of Python and of other libraries still holds."""

from __future__ import annotations

import decimal
import json
import operator
import statistics
import struct
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import jax
import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse
import scipy.sparse.linalg
from training import compiled_once

from ftrans.base import foreign
from ftrans.base.foreign import Said

MOVED = "the ground has moved: see what base/foreign.py says of {}, and what is lost without it"


class Rows:
    """What is indexed by a function in Python, which Python calls in a shorter way once it knows it."""

    def __init__(self) -> None:
        self.asked: set[tuple[int, int]] = set()

    def __getitem__(self, index: int) -> None:
        frame = sys._getframe(1)
        self.asked.add((frame.f_lasti, foreign.instruction_at(frame.f_code, frame.f_lasti)))


def test_caches_follow_instructions() -> None:
    rows = Rows()
    for _ in range(1000):
        rows[0]
    assert len({place for _, place in rows.asked}) == 1, MOVED.format("instruction_at")


class Asked:
    """An object that notes whether it was asked for a number by an assignment to an element."""

    def __init__(self) -> None:
        self.by_assignment: list[bool] = []

    def __float__(self) -> float:
        self.by_assignment.append(foreign.assigns_element(sys._getframe(1)))
        return 1.0


def test_assignments_of_elements() -> None:
    x, array = Asked(), np.zeros(4)
    for _ in range(50):
        array[0] = x
        array[1:2] = x
        float(x)
    assert x.by_assignment == [True, True, False] * 50, MOVED.format("assigns_element")


def test_receiver_of_warnings() -> None:
    before = foreign.receiver_of_warnings()
    assert before is not None, MOVED.format("receiver_of_warnings")
    with warnings.catch_warnings(record=True):
        assert foreign.receiver_of_warnings() is not before, MOVED.format("receiver_of_warnings")
    assert foreign.receiver_of_warnings() is before, MOVED.format("receiver_of_warnings")


def test_default_of_arguments_that_are_left_out() -> None:
    for value in (1.0, [1.0, 2.0]):
        assert np.sum(value, initial=foreign.NO_VALUE) == np.sum(value), MOVED.format("NO_VALUE")
    assert foreign.NO_VALUE not in (None, 0), MOVED.format("NO_VALUE")


def test_variable_of_error_modes() -> None:
    variable = foreign.VARIABLE_OF_ERROR_MODES
    assert variable is not None, MOVED.format("VARIABLE_OF_ERROR_MODES")
    before = variable.get()
    old = np.seterr(over="raise")
    assert variable.get() is not before, MOVED.format("VARIABLE_OF_ERROR_MODES")
    np.seterr(**old)
    with np.errstate(divide="raise"):
        assert variable.get() is not before, MOVED.format("VARIABLE_OF_ERROR_MODES")


class Watching:
    """An operand that looks at the frame of the function that computes with it."""

    __array_priority__ = 1000.0
    ndim, shape, dtype = 1, (3,), np.dtype(float)

    def __init__(self, look: Callable[[FrameType], Any]) -> None:
        self.look = look
        self.seen: list[Any] = []

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        self.seen.append(self.look(sys._getframe(1)))
        return self

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self.seen.append(self.look(sys._getframe(1)))
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.seen.append(self.look(sys._getframe(1)))
        return np.zeros(3)

    def __float__(self) -> float:
        self.seen.append(self.look(sys._getframe(1)))
        return 1.0

    def __add__(self, other: Any) -> Any:
        return self

    __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __add__


def test_calls_of_attributes() -> None:
    class Watched:
        @property
        def part(self) -> Any:
            is_called = foreign.calls_attribute(sys._getframe(1), "part")
            return (lambda *args, **kwargs: is_called) if is_called else is_called

    x = Watched()
    for _ in range(30):  # also once Python has specialized the instructions
        called = [x.part(), x.part(1), x.part(dim=1), next(y.part(0) for y in (x,))]
        read = [x.part, getattr(x, "part"), len([x.part]) > 1, operator.attrgetter("part")(x)]  # noqa: B009
    assert called == [True] * 4, MOVED.format("calls_attribute")
    assert x.part(), MOVED.format("calls_attribute")
    assert read == [False] * 4, MOVED.format("calls_attribute")


def test_reads_of_attributes() -> None:
    class Watched:
        @property
        def part(self) -> bool:
            return foreign.reads_attribute(sys._getframe(1), "part")

    x = Watched()
    found = [x.part, getattr(x, "part"), getattr(x, "part", None)]  # noqa: B009
    assert found == [True] * 3, MOVED.format("reads_attribute")
    others = [operator.attrgetter("part")(x), ("part", operator.attrgetter("part")(x))[1]]
    assert others == [False] * 2, MOVED.format("reads_attribute")


def test_ufuncs_of_python_functions() -> None:
    made = np.frompyfunc(lambda x, y: x, 2, 1)
    assert foreign.is_of_python_function(made), MOVED.format("is_of_python_function")
    others = [x for x in vars(np).values() if isinstance(x, np.ufunc)]
    assert not any(map(foreign.is_of_python_function, others)), MOVED.format("is_of_python_function")


def test_calls_of_vectorize() -> None:
    x = Watching(foreign.is_within_vectorize)
    np.vectorize(lambda i: x, otypes=[float])(np.arange(2))
    assert x.seen, MOVED.format("is_within_vectorize")
    assert all(x.seen), MOVED.format("is_within_vectorize")
    assert not foreign.is_within_vectorize(sys._getframe())


class Other:
    """An operand that is no array, which notes whether an operator of a sparse array lets it answer."""

    shape = (2,)

    def __init__(self) -> None:
        self.seen: list[bool] = []

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.seen.append(foreign.leaves_to_other_operand(sys._getframe(1)))
        array = np.empty((), object)
        array[()] = self
        return array

    def __rmatmul__(self, other: Any) -> str:
        return "answered"

    __rmul__ = __radd__ = __rsub__ = __rtruediv__ = __rmatmul__


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dia", "lil", "dok", "bsr"])
def test_operators_of_sparse_arrays(format: str) -> None:
    moved = MOVED.format("leaves_to_other_operand")
    for made in (scipy.sparse.eye_array(2, format=format), scipy.sparse.eye(2, format=format)):
        for operate in (operator.matmul, operator.mul, operator.truediv, operator.add, operator.sub):
            other = Other()
            assert operate(made, other) == "answered", moved
            assert all(other.seen), moved
        other = Other()
        made.multiply(other)
        assert not any(other.seen), moved


class Posing:
    """An object that says it is a sparse array, but to code of `scipy.sparse` that computes."""

    def __init__(self) -> None:
        self.seen: list[bool] = []

    @property
    def __class__(self) -> type:
        self.seen.append(foreign.computes_with_sparse_arrays(sys._getframe(1)))
        return type(self) if self.seen[-1] else scipy.sparse.csr_array

    def __rmatmul__(self, other: Any) -> str:
        return "answered"

    __radd__ = __rsub__ = __rmatmul__


def test_questions_of_sparse_arrays() -> None:
    moved = MOVED.format("computes_with_sparse_arrays")
    for operate in (operator.matmul, operator.add, operator.sub):
        x = Posing()
        assert operate(scipy.sparse.eye_array(2, format="csc"), x) == "answered", moved
    x = Posing()
    assert scipy.sparse.issparse(x), moved
    assert isinstance(x, scipy.sparse.csr_array)
    assert not any(x.seen), moved


def test_requirements() -> None:
    x = Watching(foreign.requires_properties)
    np.require(x, None, ["W"])
    assert x.seen == [True], MOVED.format("requires_properties")
    np.asarray(x)
    assert x.seen == [True, False], MOVED.format("requires_properties")


def test_shuffling_leaves_no_frame() -> None:
    frames = []

    class Shuffled(list[Any]):
        def __setitem__(self, index: Any, value: Any) -> None:
            frames.append(sys._getframe(1))
            super().__setitem__(index, value)

    np.random.default_rng(0).shuffle(Shuffled(range(4)))
    assert {frame.f_code.co_name for frame in frames} == {"test_shuffling_leaves_no_frame"}, MOVED.format("shuffles")


@pytest.mark.parametrize("method", ["mean", "sum", "std", "max", "all"])
def test_names_in_errors_of_methods(method: str) -> None:
    with pytest.raises(TypeError) as error:
        getattr(np.zeros(3), method)(surely_not=1)
    said = foreign.without_name_of_method(method, str(error.value))
    assert said is not None, MOVED.format("without_name_of_method")
    assert "surely_not" in said


# What other libraries say


class Probe:
    """What no other library knows."""

    @property
    def fixed(self) -> int:
        return 0


OBJECTS = np.array([Probe()], dtype=object)
LOCKED = np.broadcast_to(1.0, 3)


def with_keyword_only(*, wanted: int) -> None:
    """A function that cannot be called without a keyword."""


def of_jax() -> Any:
    jnp = pytest.importorskip("jax.numpy")
    return jnp.asarray(Probe())


def of_astropy() -> None:
    anything * pytest.importorskip("astropy.units").m


def of_torch() -> Any:
    return pytest.importorskip("torch").sin(Probe())


def deleted_by_jax() -> Any:
    x = pytest.importorskip("jax.numpy").ones(3)
    x.delete()
    return x + 1


anything: Any = Probe()
PROVOKED: dict[Said, Callable[[], Any]] = {
    Said.HOLDS_REFERENCES: lambda: np.nditer(OBJECTS),
    Said.NO_LOOP: lambda: np.exp(OBJECTS),
    Said.OBJECT_DTYPE: lambda: np.add(np.ones(1), OBJECTS, out=np.ones(1)),
    Said.NOT_SUPPORTED: lambda: np.isfinite(OBJECTS),
    Said.NOT_INEXACT: lambda: np.finfo(anything.__class__),
    Said.NO_INDEX: lambda: np.zeros(3)[anything],
    Said.NO_ELEMENT: lambda: np.zeros(3).flat.__setitem__(0, anything),
    Said.NO_ARGUMENT: lambda: struct.pack("d", anything),
    Said.READ_ONLY: lambda: LOCKED.__setitem__(0, 2.0),
    Said.SHUFFLED_READ_ONLY: lambda: np.random.default_rng(0).shuffle(LOCKED),
    Said.INVALID_KEYWORD: lambda: np.zeros(3).reshape(dim=1),  # type: ignore[call-overload]
    Said.AXES_DIFFER: lambda: np.zeros((2, 2, 2)).transpose(0, 1),
    Said.NO_DTYPE: lambda: np.zeros(3).sum(0, True),  # type: ignore[call-overload]
    Said.NO_ORDER: lambda: np.zeros(3).flatten(1),  # type: ignore[arg-type]
    Said.UNEXPECTED_KEYWORD: lambda: with_keyword_only(wanted=1, other=2),  # type: ignore[call-arg]
    Said.MISSING_KEYWORD: lambda: with_keyword_only(),  # type: ignore[call-arg]
    Said.UNHASHABLE: lambda: hash(anything.__dict__),
    Said.NO_BYTES: lambda: b"".join([anything]),
    Said.NO_JSON: lambda: json.dumps(anything),
    Said.NO_FRACTION: lambda: statistics.mean([anything]),
    Said.NO_DECIMAL: lambda: decimal.Decimal(anything),
    Said.NOT_CALLABLE: lambda: anything(),
    Said.NO_OPERAND: lambda: anything + 1,
    Said.NO_ORDERING: lambda: anything < 1,
    Said.NO_ATTRIBUTE: lambda: anything.surely_not,
    Said.NO_SETTER: lambda: setattr(anything, "fixed", 1),
    Said.NO_INDEX_OF_LIST: lambda: list.__getitem__([], (0, 1)),  # type: ignore[call-overload]
    Said.NO_REPETITION: lambda: [] * 0.5,  # type: ignore[operator]
    Said.NO_CONCATENATION: lambda: [] + (),  # type: ignore[operator]
    Said.NO_UNIT: of_astropy,
    Said.NOT_OF_JAX: of_jax,
    Said.NOT_OF_TORCH: of_torch,
    Said.DELETED: deleted_by_jax,
}
# What NumPy 2.5 says where NumPy before it said something else.
SINCE_NUMPY_2_5 = {Said.NOT_INEXACT: Said.OBJECT_DTYPE, Said.INVALID_KEYWORD: Said.UNEXPECTED_KEYWORD}


def test_every_text_is_provoked() -> None:
    assert set(PROVOKED) == set(Said)


@pytest.mark.parametrize("text", Said, ids=lambda text: text.name)
def test_texts_of_errors(text: Said) -> None:
    with pytest.raises(Exception) as error:  # noqa: PT011 - which one it is depends on the library
        PROVOKED[text]()
    expected = {text, SINCE_NUMPY_2_5.get(text, text)}
    assert any(known in str(error.value) for known in expected), MOVED.format(f"Said.{text.name}")


@pytest.mark.parametrize("text", [Said.NO_ATTRIBUTE, Said.NO_SETTER], ids=lambda text: text.name)
def test_texts_that_begin_with_a_class(text: Said) -> None:
    with pytest.raises(AttributeError) as error:
        PROVOKED[text]()
    assert f"'Probe' {text}" in str(error.value), MOVED.format(f"Said.{text.name}")


def test_class_without_module() -> None:
    lu = scipy.sparse.linalg.SuperLU
    assert not lu.__module__.startswith("scipy"), MOVED.format("module_of")
    assert foreign.module_of(lu.solve).startswith("scipy.sparse")


def test_kind_of_interp1d() -> None:
    x, y = np.arange(5.0), np.ones((5, 2, 3))
    for kind in ("linear", "nearest", "nearest-up", "previous", "next"):
        assert foreign.kind_of_interp1d(scipy.interpolate.interp1d(x, y, kind, axis=0)) == (kind, None), MOVED
    kind, spline = foreign.kind_of_interp1d(scipy.interpolate.interp1d(x, y, "cubic", axis=0))
    assert (kind, spline.k, spline.c.shape) == ("spline", 3, (5, 6)), MOVED


def test_axes_of_polynomial() -> None:
    y = np.arange(24.0).reshape(2, 4, 3)
    for cls in (scipy.interpolate.KroghInterpolator, scipy.interpolate.BarycentricInterpolator):
        f = cls(np.arange(4.0), y, axis=1)
        assert foreign.axes_of_polynomial(f) == (1, (2, 3)), MOVED
        assert f.yi.shape == (4, 6), MOVED


def test_parts_of_rbf() -> None:
    y = np.random.default_rng(0).normal(size=(9, 2))
    f = scipy.interpolate.RBFInterpolator(y, np.ones((9, 3)) * 2j, kernel="linear")
    shift, scale, c = foreign.parts_of_rbf(f)
    assert (shift.shape, scale.shape, c.shape) == ((2,), (2,), (10, 6)), MOVED
    np.testing.assert_allclose(np.ascontiguousarray(c).view(complex)[-1], 2j, atol=1e-12, err_msg=MOVED)


def test_spline_of_grid() -> None:
    grid, values = (np.arange(5.0), np.arange(4.0)), np.random.default_rng(0).normal(size=(5, 4, 2))
    assert foreign.spline_of_grid(scipy.interpolate.RegularGridInterpolator(grid, values)) is None, MOVED
    f = scipy.interpolate.RegularGridInterpolator(grid, values, "cubic")
    knots, c = foreign.spline_of_grid(f) or ((), None)
    spline = scipy.interpolate.NdBSpline(tuple(knots), c, 3)
    np.testing.assert_allclose(spline([[1.3, 2.2]]), f([[1.3, 2.2]]), rtol=1e-12, err_msg=MOVED)


def test_global_names_are_read_by_their_place() -> None:
    asked = []

    def renamed(name: str, is_called: bool) -> str:
        asked.append((name, is_called))
        return {"float": "int", "abs": "str"}.get(name, name)

    code = foreign.with_global_names((lambda x: (float, float(x), abs(x), x.real)).__code__, renamed)
    assert asked == [("float", False), ("float", True), ("abs", True)], MOVED
    assert FunctionType(code, {})(True) == (int, 1, "True", 1), MOVED


def test_files_of_compiled_programs_end_as_expected(tmp_path: Path) -> None:
    with compiled_once(tmp_path):
        jax.jit(lambda x: x + 1)(np.arange(3.0))
        assert list(tmp_path.glob(f"jit_*{foreign.ENDING_OF_COMPILED}")), MOVED
