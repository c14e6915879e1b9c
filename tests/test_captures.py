"""What functions close over is what it was when they used it: arrays, tensors and cells that change in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import autograd, nn
from ftrans.base.checksum import checksum
from ftrans.core import captures
from ftrans.core.tape import Tape

X = np.array([1.0, 2.0, 3.0])


def test_a_small_array_may_be_overwritten_while_it_is_traced() -> None:
    def f(x: Any) -> Any:
        scale = np.array([1.0, 2.0, 3.0])
        total = np.sum(x * scale)
        scale[:] = 10.0
        return total + np.sum(x * scale)

    np.testing.assert_array_equal(ft.grad(f)(X), [11.0, 12.0, 13.0])


def test_a_small_array_overwritten_after_its_use() -> None:
    scale = np.array([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        y = x * scale
        scale[:] = 0.0
        return np.sum(y)

    np.testing.assert_array_equal(ft.grad(f)(X), [1.0, 2.0, 3.0])


def test_a_loop_that_updates_an_array_in_place() -> None:
    def f(x: Any) -> Any:
        decay, total = np.ones(3), 0.0
        for _ in range(3):
            total = total + np.sum(decay * x)
            decay *= 0.5
        return total

    np.testing.assert_array_equal(ft.grad(f)(X), np.full(3, 1.75))


SIZES = [3, 1_000, 20_000]


def changing_and_back(array: Any) -> Callable[[Any], Any]:
    """A function that uses an array in three states, the last of which is the first."""

    def f(x: Any) -> Any:
        y = np.sum(x * array)
        array[0] = -array[0]
        z = np.sum(x * array)
        array[0] = -array[0]
        return y + 10.0 * z + 100.0 * np.sum(x * array)

    return f


def arrays_to_change(size: int) -> dict[str, Any]:
    """Arrays that can be written to, one way or another: views in each layout among them."""
    base = np.linspace(1.0, 2.0, size)
    wide, both = np.ones((size, 3)), np.ones((size, 2), order="F")
    return {
        "own": base.copy(),
        "strided": np.repeat(base, 2)[::2],
        "backwards": base.copy()[::-1],
        "column": wide[:, 1],
        "transposed": wide.T[2],
        "fortran": both,
        "int8": np.ones(size, np.int8),
        "float32": base.astype(np.float32),
        "complex": base.astype(complex),
        "memory": np.frombuffer(bytearray(base.tobytes())),
    }


@pytest.mark.parametrize("kind", list(arrays_to_change(1)))
@pytest.mark.parametrize("size", SIZES)
def test_each_use_sees_what_an_array_held_then(kind: str, size: int) -> None:
    array = arrays_to_change(size)[kind]
    f = changing_and_back(array)
    wanted = f(2.0)
    for value in (ft.trace(f)(2.0)(2.0)[0], ft.jvp(f, (2.0,), (1.0,))[0], ft.vmap(f)(np.array([2.0]))[0]):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
    if size == SIZES[-1]:
        np.testing.assert_allclose(ft.jit(f)(2.0), wanted, rtol=1e-5)


def test_a_frozen_view_of_what_changes() -> None:
    base = np.ones(20_000)
    view = base[:]
    view.flags.writeable = False

    def f(x: Any) -> Any:
        y = np.sum(x * view)
        base[0] = 100.0
        y = y + np.sum(x * view)
        base[0] = 1.0
        return y

    assert ft.value_and_grad(f)(1.0) == (40_099.0, 40_099.0)


def written_by_a_view(array: Any) -> Callable[[float], None]:
    view = array[:]
    array.flags.writeable = False
    return lambda value: view.__setitem__(0, value)


def written_by_a_row(array: Any) -> Callable[[float], None]:
    row = array.reshape(2, -1)[0]
    array.setflags(write=False)
    return lambda value: row.__setitem__(0, value)


def written_when_thawed(array: Any) -> Callable[[float], None]:
    array.flags.writeable = False

    def write(value: float) -> None:
        array.flags.writeable = True
        array[0] = value
        array.flags.writeable = False

    return write


@pytest.mark.parametrize("writer", [written_by_a_view, written_by_a_row, written_when_thawed])
@pytest.mark.parametrize("size", [4, 20_000])
def test_a_read_only_array_that_is_written_to_all_the_same(writer: Any, size: int) -> None:
    array = np.ones(size)
    write = writer(array)

    def f(x: Any) -> Any:
        y = np.sum(x * array)
        write(5.0)
        z = np.sum(x * array)
        write(1.0)
        return y + 100.0 * z

    wanted = f(1.0)
    assert wanted == 101.0 * size + 400.0
    for value in (ft.value_and_grad(f)(1.0)[1], ft.trace(f)(1.0)(1.0)[0], ft.jit(f)(1.0)):
        np.testing.assert_allclose(value, wanted)


@pytest.mark.usefixtures("without_copies")
def test_a_read_only_array_too_large_to_be_copied() -> None:
    array = np.ones(20_000)
    write = written_by_a_view(array)

    def f(x: Any) -> Any:
        y = np.sum(x * array)
        write(5.0)
        return y

    with pytest.raises(ValueError, match="used and then overwritten"):
        ft.grad(f)(1.0)


def values_captured(array: Any, outer: captures.Captures | None = None) -> list[Any]:
    """What a program captures that uses an array."""
    program = captures.Captures(Tape([]), outer)
    program.add_array(array)
    return program.values


@pytest.mark.parametrize("buffer", [bytes, lambda data: memoryview(bytes(data))])
def test_what_lies_in_bytes_is_not_copied(buffer: Any) -> None:
    array = np.frombuffer(buffer(np.ones(20_000).tobytes()))
    (taken,) = values_captured(array)
    assert taken is array


def test_a_copy_is_not_copied_again() -> None:
    """Inner functions hand the copies that they have to the program around them."""
    outer = captures.Captures(Tape([]), None)
    (copy,) = values_captured(np.ones(20_000), outer)
    outer.add_array(copy)
    assert outer.values[0] is copy


def test_an_array_that_gets_another_shape() -> None:
    def f(x: Any) -> Any:
        array = np.arange(20_000.0)
        y = x * array
        array = array[:]
        other = np.arange(20_000.0)
        z = np.sum(x * other)
        other.resize((2, 10_000), refcheck=False)
        return np.sum(y) + z + np.sum(x * other[1])

    assert ft.grad(f)(1.0) == ft.value_and_grad(f)(1.0)[0] == f(1.0)


def test_branches_on_values_of_an_array_that_changes_back() -> None:
    array = np.ones(20_000)

    def f(x: Any) -> Any:
        total = np.sum(x * array)
        array[0] = -1e6
        y = x if total > 0 else 100.0 * x
        array[0] = 1.0
        return y

    assert ft.grad(f)(1.0) == 1.0


@pytest.fixture
def without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all arrays were too large to be copied."""
    monkeypatch.setattr(captures, "_COPIED_BYTES", 0)


@pytest.mark.usefixtures("without_copies")
@pytest.mark.parametrize("use", [ft.grad, ft.jit, ft.trace, ft.hessian])
def test_an_array_too_large_to_be_copied_must_stay(use: Any) -> None:
    array = np.ones(20_000)
    with pytest.raises(ValueError, match=r"(?s)used and then overwritten.*a = a \+ b.*test_captures\.py:\d+: y = "):
        use(changing_and_back(array))(1.0)


@pytest.mark.usefixtures("without_copies")
def test_functions_that_are_traced_one_after_the_other_see_the_same() -> None:
    array = np.ones(20_000)

    def uses(x: Any) -> Any:
        return np.sum(x * array)

    def changes(x: Any) -> Any:
        array[0] += 1.0
        return np.sum(x)

    @ft.custom_vjp
    def with_rule(x: Any) -> Any:
        return uses(x)

    with_rule.defvjp(lambda x: (uses(x), x), lambda x, ct: (ct * changes(x),))
    for f in (
        lambda x: ft.switch((x > 1.0).astype(int), [uses, changes], x),
        lambda x: ft.while_loop(lambda c: changes(c) < 3.0, uses, x),
        with_rule,
    ):
        with pytest.raises(ValueError, match="used and then overwritten"):
            ft.trace(f)(0.0)


@pytest.mark.usefixtures("without_copies")
def test_a_branch_does_not_look_at_what_has_been_overwritten() -> None:
    array = np.ones(20_000)

    def f(x: Any) -> Any:
        total = np.sum(x * array)
        array[0] = -1e6
        y = x if total > 0 else 100.0 * x
        array[0] = 1.0
        return y

    with pytest.raises(ValueError, match="used and then overwritten"):
        ft.grad(f)(1.0)


@pytest.mark.usefixtures("without_copies")
def test_an_inner_function_may_see_a_buffer_in_several_states() -> None:
    buffer = np.ones(20_000)

    def f(x: Any) -> Any:
        slopes = []
        for k in range(3):
            buffer[:] = k
            slopes.append(ft.grad(lambda y: np.sum(y * buffer))(1.0))
        return x * sum(slopes)

    assert ft.grad(f)(1.0) == 60_000.0


# Tensors and cells


def change_tensor(x: Any) -> None:
    with autograd.no_grad():
        x.add_(1.0)


def change_data(x: Any) -> None:
    x.data = np.full(3, 5.0)


def change_array(x: Any) -> None:
    x.detach().numpy()[0] = 7.0


def change_cell(x: Any) -> None:
    x.array = x.array * 2.0


def change_memory(x: Any) -> None:
    x.array[0] = 5.0


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (autograd.tensor, change_tensor),
        (autograd.tensor, change_data),
        (autograd.tensor, change_array),
        (lambda x: autograd.tensor(x, requires_grad=True), change_tensor),
        (lambda x: autograd.from_numpy(x), change_array),
        (nn.Parameter, change_cell),
        (nn.Parameter, change_memory),
    ],
)
@pytest.mark.parametrize("uses_it_again", [True, False])
def test_tensors_and_parameters_must_stay(make: Any, change: Any, uses_it_again: bool) -> None:
    held = make(np.ones(3))

    def f(x: Any) -> Any:
        y = np.sum(x * held)
        change(held)
        return y + np.sum(x * held) if uses_it_again else y

    if change is change_cell and not uses_it_again:
        # The array that was used is as it was.
        assert ft.grad(f)(1.0) == 3.0
        return
    with pytest.raises(ValueError, match=r"(?s)Tensor of shape \(3,\) was used and then overwritten.*y = np.sum"):
        ft.value_and_grad(f)(1.0)


def test_buffers_are_arrays() -> None:
    held = nn.Buffer(np.ones(3))

    def f(x: Any) -> Any:
        y = np.sum(x * held)
        change_memory(held)
        return y + 10.0 * np.sum(x * held)

    assert ft.grad(f)(1.0) == 73.0


# Checksums


SIZES_OF_CHECKSUMS = [1, 1_023, 1_025, 40_000, 100_003]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.bool_])
@pytest.mark.parametrize("size", SIZES_OF_CHECKSUMS)
def test_a_checksum_sees_each_single_bit(size: int, dtype: Any) -> None:
    random = np.random.default_rng(size)
    array = np.ones(size, dtype)
    before, raw = checksum(array), array.view(np.uint8)
    for place in {0, raw.size - 1, *random.integers(0, raw.size, 30).tolist()}:
        for bit in range(8):
            raw[place] ^= 1 << bit
            assert checksum(array) != before
            raw[place] ^= 1 << bit
    assert checksum(array.copy()) == before


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_checksum_sees_signs_flip_in_regular_patterns(dtype: Any) -> None:
    """Flips of the highest bit are what sums modulo a power of two take for nothing, two by two."""
    random = np.random.default_rng(0)
    array = random.normal(size=(64, 8192)).astype(dtype)
    before = checksum(array)
    for rows, columns in ((2, 2), (2, 4), (8, 8), (16, 1024), (64, 8192), (32, 1)):
        for _ in range(5):
            some = np.ix_(random.choice(64, rows, replace=False), random.choice(8192, columns, replace=False))
            array[some] *= -1
            assert checksum(array) != before
            array[some] *= -1
        for start in (0, 1):
            block = array[start : start + rows, start : start + columns]
            np.negative(block, out=block)
            assert checksum(array) != before
            np.negative(block, out=block)
    assert checksum(array) == before


@pytest.mark.parametrize("size", [1_000, 40_000, 100_000])
def test_a_checksum_sees_that_elements_changed_places(size: int) -> None:
    random = np.random.default_rng(0)
    array = random.normal(size=size)
    before = checksum(array)
    for _ in range(100):
        i, j = random.choice(size, 2, replace=False)
        array[[i, j]] = array[[j, i]]
        assert checksum(array) != before
        array[[i, j]] = array[[j, i]]
    assert checksum(array.copy()) == before
    assert checksum(np.sort(array)) != before
