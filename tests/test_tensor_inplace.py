"""Tensors that are changed in place: views, memory that is shared, and what is then refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from checks import assert_close
from tensors import a, check_gradients, leaf, value
from test_numpy_assignment import (
    COUNTS,
    CUBE,
    MASK,
    MATRIX,
    NUMBER,
    STATEMENTS,
    VECTOR,
    random_index,
    statement_as_function,
)

from ftrans.autograd import Tensor

X = np.array([1.5, -2.0, 0.7, 3.0])
POSITIVE = np.array([[0.6, 1.7, 2.2], [1.3, 0.4, 3.1]])


def line_of(text: str) -> str:
    """A pattern for a message that names a line of this file."""
    return rf"test_tensor.*\.py:\d+: .*{re.escape(text)}"


REFUSED = {
    "y = np.array(x[0] * 1); y += 1; v -= y": r"np\.stack",
    "y = copy.deepcopy(x); y += 1": "only a leaf can be copied",
    "x[:, 1] = np.sort(x[:, 1])": "changed in place",
    "x.flat = x[::-1] * s": "changed in place",
}
# As an index, a tensor without axes counts as a number, which chooses a view; here NumPy has an array.
_OTHER = "i = k[:1].reshape(()); y = x[i]; k[0] = 1; x[2] = v; v += y"
# Sorting in place has to be said by the name of the axis.
_SORTED = {"v.sort()": "v.sort(axis=0)", "x.sort(0)": "x.sort(axis=0)", "x.sort()": "x.sort(axis=-1)"}
_SORTED["x[0].sort()"] = "x[0].sort(axis=0)"
# Indices that mean other elements in torch are refused.
_UNCLEAR = ("t[0, :, [1, 2]] = 3 * np.ones((2, 3))", "t[0, :, m[0]] = s")
OF_TENSORS = [_SORTED.get(text, text) for text in STATEMENTS if text not in (_OTHER, *_UNCLEAR)]


@tables.each(str, text=OF_TENSORS)
def test_statements_that_assign_have_the_derivatives_that_traces_have(text: str) -> None:
    f = statement_as_function(text)
    args = (MATRIX, VECTOR, CUBE, NUMBER, COUNTS, MASK)
    with np.errstate(all="ignore"):
        if text in REFUSED:
            with pytest.raises(RuntimeError, match=REFUSED[text]):
                check_gradients(f, *args)
        else:
            check_gradients(f, *args)


@pytest.mark.parametrize(("number", "text"), list(enumerate(OF_TENSORS)))
def test_statements_mix_tensors_with_and_without_gradient(number: int, text: str) -> None:
    args = (MATRIX, VECTOR, CUBE, NUMBER, COUNTS, MASK)
    with np.errstate(all="ignore"):
        if text in REFUSED:
            return
        check_gradients(statement_as_function(text), *args, plain=[(0, 2), (1, 3)][number % 2])


# Each changes its argument, or returns something else that it has changed.


def overlapping(x: Any) -> None:
    x *= x[::-1]


def itself(x: Any) -> None:
    x *= x


def shifted(x: Any) -> None:
    x[:-1] *= x[1:]


def element_by_element(x: Any) -> None:
    x[0] *= x[1]
    x[1] *= x[0]
    x *= x.sum()


def into_itself(x: Any) -> None:
    np.multiply(x, x[::-1], out=x)


def through_a_view(x: Any) -> Any:
    y = x[::-1]
    y *= x
    return y


def out_is_a_view(x: Any) -> Any:
    y = x[::-1]
    np.sin(y, out=y)
    return x * y


def nothing_chosen(x: Any) -> Any:
    x[1:1] = 5.0
    x[x > 100] = 5.0
    return x * x


def reshaped(x: Any) -> Any:
    y = x.reshape(2, 2).T
    y[0] *= y[1]
    return x * x[::-1]


def added_at(x: Any) -> Any:
    np.add.at(x, [0, 0, 1], x[:3])
    return x * x


def chosen_twice(x: Any) -> Any:
    x[[0, 1]] *= x[[1, 2]]
    x[[0, 1]] = x[[1, 2]] * x[[0, 0]]
    return x * x


def sorted_in_place(x: Any) -> Any:
    x.sort(axis=-1)
    return x * x * np.arange(4.0)


def filled_in_part(x: Any) -> Any:
    x[:2].fill(3.0)
    x[1:3] += x[2:] * 2
    return x * x[::-1]


def from_one_place_to_the_next(x: Any) -> None:
    for i in range(3):
        x[i + 1] = x[i] * x[i + 1]


def powers(x: Any) -> None:
    x -= 1
    x @= np.eye(4)[::-1] * 2
    x **= 2
    x /= x[0]


def views_of_views(x: Any) -> Any:
    y = x.reshape(2, 2)
    z = y[1]
    w = z[::-1]
    w *= 2
    x[2] = x[3] * 3
    z += y[0]
    return x * 1, y * 1, z * 1, w * 1


def parts_of_a_split(x: Any) -> Any:
    first, second = np.split(x, 2)
    first += second
    second *= first
    return x * x, first * second


def flat_elements(x: Any) -> Any:
    y = x.reshape(2, 2).T
    y.flat[1:3] = y.flat[0] * 2
    y.flat[3] *= x[1]
    return x * x


def integers_of_numpy(x: Any) -> Any:
    y = x.reshape(2, 2)
    for i in np.arange(2):
        y[i] += y[i - 1] * 2
    y[np.argmax(y[:, 0])] *= 3
    one = np.int64(1)
    y[one:] *= 2
    y[one, one] += y[np.int64(0), 0]
    return x * x


def chosen_by_tensors(x: Any) -> Any:
    places = a.tensor([2, 0]) if isinstance(x, Tensor) else np.array([2, 0])
    x[places] *= 3
    np.add.at(x, places, x[places])
    x[places[0]] = x[places[1]] * 2
    return x * x


def parts_of_complex_numbers(x: Any) -> Any:
    z = x + 1j * x[::-1]
    y = z.real
    y *= z.imag
    z.imag[0] = 5.0
    z.imag = z.real * 2
    return z * z, y * 1


def with_masks(x: Any) -> Any:
    y = np.where(x > 1, x, 0.0)
    np.copyto(y, x * 2, where=x < 2)
    np.multiply(y, x, out=y, where=x > 0)
    return y


def to_a_view_and_back(x: Any) -> Any:
    y = x.reshape(2, 2).T
    y[0] = x[2:]
    y = y.T
    y[1:] = y[:-1] * 2
    return x * 1


FUNCTIONS = [
    integers_of_numpy, chosen_by_tensors, parts_of_complex_numbers, with_masks, to_a_view_and_back,
    overlapping, itself, shifted, element_by_element, into_itself, through_a_view, out_is_a_view, nothing_chosen,
    added_at, chosen_twice, sorted_in_place, filled_in_part, from_one_place_to_the_next, powers, views_of_views,
    parts_of_a_split, flat_elements, reshaped,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_changes_in_place(f: Callable[[Any], Any]) -> None:
    def g(x: Any) -> Any:
        y = f(x)
        return x if y is None else y

    check_gradients(g, X, order=2, retraced=lambda x: g(x.copy()))


def random_changes(seed: int, x: Any, w: Any) -> Any:
    """Views of views of `x`, some of which are changed, also by each other and by `w`."""
    choose = np.random.default_rng(seed)
    views = [x]
    for _ in range(9):
        y = views[int(choose.integers(len(views)))]
        kind = choose.choice(["T", "index", "reshape", "assign", "add", "multiply", "other", "copy"])
        if kind == "T":
            y = y.T
        elif kind == "index":
            y = y[random_index(choose, y.shape)]
        elif kind == "reshape":
            y = y.reshape(y.shape[::-1]) if y.ndim < 2 else y.swapaxes(0, 1)
        elif kind == "assign" and y.ndim:
            y[random_index(choose, y.shape)] = w * 2
        elif kind == "add" and y.ndim:
            y += w
        elif kind == "multiply" and y.ndim:
            y *= np.cos(y.sum() / 4)
        elif kind == "other" and y.ndim:
            z = views[int(choose.integers(len(views)))]
            y += z.sum() * w
        elif kind == "copy":
            y = y * w
        if y.ndim:
            views.append(y)
    return [v * 1.0 for v in views]


@tables.each(str, seed=range(120))
def test_random_views_and_changes(seed: int) -> None:
    shape = tuple(int(n) for n in np.random.default_rng(seed).integers(1, 4, size=seed % 3 + 1))
    x = np.random.default_rng(seed).normal(size=shape)
    try:
        check_gradients(lambda x, w: random_changes(seed, x, w), x, np.float64(0.7), tolerance=1e-9)
    except RuntimeError as error:
        # A value that was needed has been overwritten, which is refused.
        if "changed in place" not in str(error):
            raise


def test_most_random_changes_are_not_refused() -> None:
    refused = 0
    for seed in range(40):
        x = np.random.default_rng(seed).normal(size=(3, 2))
        w = leaf(0.7)
        outs = random_changes(seed, leaf(x).clone(), w)
        try:
            a.grad([y.sum() for y in outs], w, allow_unused=True)
        except RuntimeError:
            refused += 1
    assert refused < 30


def test_a_tensor_without_gradient_becomes_part_of_the_graph() -> None:
    w = leaf(X)
    x = a.zeros(4)
    part = x[1:]
    part *= w[1:]
    assert x.requires_grad
    assert part.requires_grad
    assert not x.is_leaf
    x[0] = w[0] * 2
    part += w[0]
    (x * x).sum().backward()

    def f(w: Any) -> Any:
        first, rest = w[0] * 2, w[0]
        return first**2 + 3 * rest**2

    assert_close(value(w.grad), np.array([2 * 4 * X[0] + 6 * X[0], 0.0, 0.0, 0.0]))


def test_what_is_overwritten_needs_no_gradient() -> None:
    x = leaf(X)
    for change in (lambda y: y.__setitem__(..., 2.0), lambda y: y.zero_(), lambda y: y.fill_(1.0)):
        y = x * 2
        change(y)
        assert not y.requires_grad
        y = x * 2
        change(y[1:])
        (found,) = a.grad(y.sum(), x)
        assert_close(value(found), np.array([2.0, 0.0, 0.0, 0.0]))


# What is refused


def test_leaves_are_not_changed() -> None:
    x = a.tensor(X, requires_grad=True)
    for change in (
        lambda: x.__iadd__(1), lambda: x.__setitem__(0, 1.0), lambda: x.sort(axis=0), lambda: x[1:].fill(0.0),
        lambda: np.add(x, 1, out=x), lambda: np.copyto(x, 0.0), lambda: np.add.at(x, [0], 1.0), lambda: x.exp_(),
        lambda: x.reshape(2, 2).__imul__(2), lambda: np.fill_diagonal(x.reshape(2, 2), 0.0), lambda: x.zero_(),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"(?s)leaf.*asked for at.*x = a\.tensor.*no_grad"):
            change()
    assert_close(value(x), X)
    with a.no_grad():
        x += 1
        x[0] = 0.0
    assert_close(value(x), np.array([0.0, -1.0, 1.7, 4.0]))


def test_a_value_that_backward_needs() -> None:
    x = leaf(X)
    y = x * 2
    z = np.sin(y).sum()
    y += 1
    with pytest.raises(
        RuntimeError, match="(?s)Sin.*" + line_of("z = np.sin(y).sum()") + r"(?s:.*)" + line_of("y += 1")
    ):
        z.backward()
    y = np.exp(x)
    z = y.sum()
    y[0] = 0.0
    with pytest.raises(RuntimeError, match=r"(?s)Exp.*y\[0\] = 0\.0"):
        z.backward()
    y = x * 2
    z = (y + 1).sum()
    y *= 2
    z.backward()
    assert_close(value(x.grad), np.full(4, 2.0))


@pytest.mark.parametrize("write", [
    lambda v: v.detach().__setitem__(0, 9.0), lambda v: v.detach().numpy().__setitem__(0, 9.0),
    lambda v: v.data.__setitem__(0, 9.0), lambda v: v.data.fill(9.0), lambda v: v.detach()[1:].numpy().fill(9.0),
    lambda v: v[1:].detach().mul_(3.0), lambda v: np.asarray(v.detach(), copy=False).fill(9.0),
])  # fmt: skip
def test_writing_to_shared_memory_is_seen(write: Callable[[Any], Any]) -> None:
    for make in (lambda x: x, lambda x: x.clone()):
        x = leaf(X)
        v = make(x)
        y = (v * v).sum()
        with a.no_grad():
            write(v)
        with pytest.raises(RuntimeError, match="changed in place"):
            y.backward()


def test_writing_later_to_an_array_that_was_lent() -> None:
    x, w = a.tensor(X), leaf(X)
    lent = x.numpy()
    y = (w * x).sum()
    lent[0] = 9.0
    with pytest.raises(RuntimeError, match="wrote to the NumPy array"):
        y.backward()
    assert value(x)[0] == 9.0
    for make in (a.from_numpy, a.as_tensor):
        plain = X.copy()
        x = make(plain)
        y = (w * x).sum()
        plain[0] = 100.0
        with pytest.raises(RuntimeError, match="wrote to the NumPy array"):
            y.backward()
        assert value(x)[0] == 100.0
        y = (w * x).sum()
        (found,) = a.grad(y, w)
        assert_close(value(found), plain)


@pytest.mark.parametrize("size", [3, 30_000])
def test_plain_arrays_may_be_written_to_or_are_watched(size: int) -> None:
    w, plain = leaf(np.ones(size)), np.ones(size)
    y = (w * plain).sum()
    plain[0] = 100.0
    if size < 1000:
        y.backward()
        assert_close(value(w.grad), np.ones(size))
    else:
        with pytest.raises(RuntimeError, match="wrote to the NumPy array"):
            y.backward()


def test_results_for_arrays_that_others_write_to() -> None:
    """A result of NumPy that is a view of a plain array is watched as that array is."""
    plain, w = np.ones((3, 1)), leaf(np.ones(3))
    part, _ = np.broadcast_arrays(plain, w)
    y = (w * part).sum()
    plain[0] = 100.0
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_copies_are_not_shared() -> None:
    plain = X.copy()
    x = a.tensor(plain)
    plain[0] = 9.0
    assert value(x)[0] == X[0]
    array = np.asarray(x)
    array[0] = 9.0
    assert value(x)[0] == X[0]
    y = leaf(X)
    assert y.numpy(force=True) is not y.array
    with pytest.raises(RuntimeError, match="detach"):
        y.numpy()


def test_views_made_without_gradient_are_not_changed_with_it() -> None:
    x = leaf(X)
    y = x * 2
    with a.no_grad():
        part = y[1:]
    assert not part.requires_grad
    for shared in (part, y.detach(), y.data):
        with pytest.raises(RuntimeError, match=r"detach\(\) or no_grad"):
            shared *= x[: len(shared)]
    with a.no_grad():
        part += 1
    assert_close(value(y)[1:], 2 * X[1:] + 1)


def test_data_can_be_replaced() -> None:
    x = leaf(X)
    y = (x * x).sum()
    x.data = np.zeros(4)
    y.backward()
    assert_close(value(x.grad), 2 * X)
    with pytest.raises(RuntimeError, match="keeps its type"):
        x.data = np.zeros(3)
    plain = a.tensor(X)
    plain.data = np.zeros(3)
    assert plain.shape == (3,)


def test_a_view_of_what_data_held_before_is_no_view_any_more() -> None:
    y = leaf(X) * 2
    part = y[1:]
    y.data = np.zeros(4)
    with pytest.raises(RuntimeError, match="in a way that the graph cannot follow"):
        part *= 2
    assert_close(value(y), np.zeros(4))


def test_a_leaf_that_is_a_view_does_not_lose_its_gradient() -> None:
    base = a.zeros(4)
    part = base[1:].requires_grad_()
    (part * 3).sum().backward()
    assert_close(value(part.grad), np.full(3, 3.0))
    base += leaf(X)
    with pytest.raises(RuntimeError, match="in a way that the graph cannot follow"):
        part * 2


def test_changes_of_read_only_arrays_fail_as_in_numpy() -> None:
    x = leaf(X).clone()
    y = np.broadcast_to(x, (2, 4))
    with pytest.raises(ValueError, match="read-only"):
        y += 1
    y = x.reshape(2, 2).diagonal()
    with pytest.raises(ValueError, match="read-only"):
        y += 1
    check_gradients(lambda x: x * 2, X)


def test_a_failed_change_leaves_the_tensor_as_it_was() -> None:
    x = leaf(X)
    y = x * 2
    before = y.grad_fn
    for change in (lambda: y.__iadd__(np.ones(3)), lambda: y.__setitem__(9, 1.0), lambda: y.__iadd__(1j)):
        with pytest.raises((ValueError, IndexError, TypeError)):
            change()
    assert y.grad_fn is before
    (found,) = a.grad((y * y).sum(), x)
    assert_close(value(found), 8 * X)


def test_python_functions_that_ask_for_an_array() -> None:
    x = leaf(POSITIVE)
    for use in (np.asarray, np.array, lambda x: np.array([x, x]), lambda x: np.zeros((2, 3)).__setitem__(..., x)):
        with pytest.raises(RuntimeError, match="detach"):
            use(x)
    np.testing.assert_array_equal(np.asarray(x.detach()), POSITIVE)
    out = np.zeros(3)
    with pytest.raises(ValueError, match="array element") as caught:
        out[0] = x[0, 0]
    assert "as an element of a NumPy array" in str(caught.value.__cause__)
    out[0] = float(x[0, 0])
    out[1] = x.detach()[0, 0]
    assert out[0] == out[1] == POSITIVE[0, 0]
    for into in (out, out[:2]):
        with pytest.raises(TypeError, match="NumPy array"):
            into += x[0, : len(into)]
    with pytest.raises(RuntimeError, match="NumPy array"):
        np.full(3, x[0, 0])
    for change in (
        lambda: np.copyto(out, x[0]), lambda: np.add(out, x[0], out=out), lambda: np.add.at(out, [0], x[0, :1]),
        lambda: np.put(out, [0], x[0, 0]),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="NumPy array"):
            change()


# Memory that is shared with arrays


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("size", [4, 2000])
def test_arrays_that_are_seen_through_another_one(size: int, read_only: bool) -> None:
    data = np.arange(float(size))
    view = np.broadcast_to(data, (2, size)) if read_only else data[None]
    x = leaf(np.ones((2, size)))
    loss = (x * view).sum()
    data[0] = 100.0
    if size == 4:
        loss.backward()
        assert_close(value(x.grad), np.broadcast_to(np.arange(4.0), (2, 4)))
    else:
        with pytest.raises(RuntimeError, match="changed in place"):
            loss.backward()


def test_elements_of_an_array_that_change_places() -> None:
    x, data = leaf(np.ones(2000)), np.arange(2000.0)
    loss = (x * data).sum()
    data[:] = data[::-1].copy()
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


def test_every_array_that_was_given_away_is_watched() -> None:
    x, y = leaf(np.ones(4)), a.tensor(np.arange(4.0))
    first, second = y[:2].numpy(), y[2:].numpy()
    for given, again in ((first, y.numpy()), (second, y[1:].numpy())):
        loss = (x * y).sum()
        given[0] += 100.0
        assert again is not None
        with pytest.raises(RuntimeError, match="changed in place"):
            loss.backward()


def test_a_change_counts_though_another_array_is_given_away_after_it() -> None:
    x, y = leaf(np.ones(4)), a.tensor(np.arange(4.0))
    part = y[:2].numpy()
    loss = (x * y).sum()
    part[0] = 100.0
    y.numpy()
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


def test_data_that_is_shared_is_watched() -> None:
    x, other = leaf(X), a.zeros(4)
    loss = (x * x).sum()
    other.data = x.data
    other += 1.0
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


def test_an_array_that_comes_back_among_results_is_watched() -> None:
    x, data = leaf(X), np.ones(4)
    same = np.atleast_1d(x, data)[1]
    loss = (x * same).sum()
    data[0] = 100.0
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


def test_a_view_made_without_gradient_is_assigned_without_gradient() -> None:
    x = leaf(X)
    y = x * 1
    with a.no_grad():
        first = y[:1]
    y[:1] = first
    y.sum().backward()
    assert_close(value(x.grad), np.array([0.0, 1.0, 1.0, 1.0]))


def test_options_that_overwrite_the_input() -> None:
    x = leaf(np.array([1.0, np.nan, -2.0]))
    y = x * 2
    assert np.nan_to_num(y, copy=False) is y
    y.sum().backward()
    assert_close(value(x.grad), np.array([2.0, 0.0, 2.0]))
    x = leaf(np.array([3.0, 1.0, 2.0]))
    y = x * 1
    (np.median(y, overwrite_input=True) * y[0]).backward()
    assert_close(value(x.grad), np.array([2.0, 0.0, 3.0]))


def test_functions_that_write_while_they_read() -> None:
    def f(y: Any) -> Any:
        before = y.copy()
        return np.concatenate([before[:1], before[:2]])

    x = leaf(POSITIVE[[0, 1, 0]])
    y = x * x
    np.concatenate([y[:1], y[:2]], out=y)
    assert_close(value(y), f(value(x) ** 2))
    (y * np.arange(9.0).reshape(3, 3)).sum().backward()
    assert_close(value(x.grad), 2 * value(x) * np.array([[3.0, 5.0, 7.0], [6.0, 7.0, 8.0], [0.0, 0.0, 0.0]]))
