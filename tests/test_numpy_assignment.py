"""Assignment to traced values and views of them: what NumPy does to an array, a trace does too, or says why not."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from checks import assert_all_close

import ftrans as ft
import ftrans.numpy as fnp
from ftrans.core.trace import building
from ftrans.core.types import type_of
from ftrans.core.witness import CodeBuilder, ConcretizationError
from ftrans.numpy.promotion import asarray

random = np.random.default_rng(0)
MATRIX = random.normal(size=(3, 4))
VECTOR = random.normal(size=4)
CUBE = random.normal(size=(2, 3, 4))
NUMBER = np.float64(0.7)
COUNTS = np.array([2, 0, 1])
MASK = MATRIX > 0


def by_trace(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The results of a function by way of a program."""
    builder = CodeBuilder([type_of(x) for x in arguments], arguments, shared=True)
    with building(builder):
        result = function(*builder.inputs())
        outputs = [asarray(x) for x in (result if isinstance(result, tuple | list) else [result])]
        program = builder.finish(outputs, "f").check()
    return program(*arguments, *builder.captures.values)


def assert_same_as_numpy(function: Callable[..., Any], *arguments: Any) -> None:
    """Assert that a function which assigns to its arguments gives the same on arrays and on traced values."""
    expected = function(*(np.array(x) for x in arguments))
    expected = [np.asarray(x)[()] for x in (expected if isinstance(expected, tuple | list) else [expected])]
    results = by_trace(function, *(np.array(x) for x in arguments))
    assert_all_close([np.asarray(x)[()] for x in results], expected)


# Statements on x (a matrix), v (a vector), t (a cube), s (a number), k (integers), m (a mask); x, v and t are compared.
STATEMENTS = [
    "x[0] = 1.0", "x[0] = v", "x[:, 1] = s", "x[1, 2] = s", "x[-1] = [1, 2, 3, 4]", "x[...] = 2", "x[:] = v",
    "x[::2] = v", "x[::-1] = x", "x[:, ::-1] = v", "x[1:, :2] = s", "x[1:1] = 5.0", "x[None] = v", "x[0, ...] = s",
    "x[0] = None", "x[:, None, 0] = s", "x[2:0:-1, ::2] = [[1, 2], [3, 4]]", "x[[0, 2]] = v", "x[[0, 2], [1, 3]] = s",
    "x[[0, 2], [1, 3]] = v[:2]", "x[:, [0, 2]] = v[:2]", "x[k] = v", "x[k, k] = v[:3]", "x[:, k] = s", "x[k[0]] = v",
    "x[k[0], 1] = s", "x[[0, 0], 1] = [1.0, 2.0]", "x[1:, k[:2]] = s", "t[:, [0, 2], 1] = s",
    "t[0, :, [1, 2]] = 3 * np.ones((2, 3))", "t[[0, 1], :, [1, 2]] = v[:3]", "t[..., [0, 1]] = x[:, :2]",
    "t[[0], :, [1]] = s", "x[np.array([[0, 1], [2, 2]])] = 1.5", "x[MASK] = 0.0", "x[MASK] = s", "x[m] = 0.0",
    "x[m] = s", "x[m] += 1", "x[m] *= s", "x[m] -= x[m]", "x[m] /= 2.0", "x[MASK] += s", "x[m] = x[m] * 2",
    "x[m] = -x[m]", "x[m] = x[m] ** 2", "x[x < 0] = 0.0", "x[x < 0] = -x[x < 0]", "x[:, m[0]] = s", "x[m[:, 0]] = v",
    "x[m[:, 0]] += v", "x[m[:, 0], 1] = s", "x[:, m[0]] += 1.0", "x[MASK[:, 0]] = v", "x[1:, MASK[0]] = s",
    "t[:, m] = s", "t[:, m] = 1.0", "t[0, m] = s", "t[0, :, m[0]] = s",
    "x[m] = np.arange(m.sum() if type(m) is np.ndarray else 1.0 * MASK.sum())", "x[m & (x > 1)] = 9.0",
    "x[s > 0] = 1.0", "x[~m] = x[~m] + s", "x += 1", "x -= v", "x *= s", "x /= 2", "x **= 2", "x //= 0.5", "x %= 0.5",
    "x[0] += v", "x[:, 1] *= s", "x[1, 2] += s", "x[::2] -= v", "x[k] += v", "x @= np.eye(4)", "y = x; y += 1",
    "y = x[0]; y += 1", "y = x[0]; y[1] = s", "y = x[1:][:, 1]; y *= s", "y = x.T; y[0] = s", "y = x.T[1]; y += s",
    "y = x[::-1]; y[0] = v", "y = x.reshape(4, 3); y[0, 1] = s", "y = x.ravel(); y[3] = s",
    "y = x.ravel()[::2]; y += 1", "y = x.reshape(-1)[2:5]; y[:] = s", "y = x.flat; y[::5] = 0.0",
    "y = x.reshape(3, 2, 2); y[:, 1] = s; x[0] = v", "y = x[0]; x[0] = v; v += y",
    "y = x[:, 0]; z = x[0]; y += 1; z *= 2; y -= z[0]", "y = v[1:]; z = v[:-1]; y += z", "y = v[1:3]; y[:] = y[::-1]",
    "y = x.copy(); y[0] = 5.0; v += y[0]", "y = x + 0; y += 1; v += y[0]", "y = x[[0, 1]]; y += 1; v += y[0]",
    "y = x[0].copy(); y += 1; v += y", "y = +x; y += 1", "y = x.astype(float); y += 1",
    "y = np.array(x[0] * 1); y += 1; v -= y", "y = x[m]; y += 1", "y = np.where(m, x, 0); y += 1",
    "y = np.squeeze(x[None]); y[0] = s", "y = np.expand_dims(x, 1); y[0, 0] = v",
    "y = np.atleast_3d(x); y[0, 0, 0] = s", "y = np.atleast_1d(x); y += 1", "y = np.moveaxis(t, 0, -1); y[0] = s",
    "y = np.swapaxes(t, 0, 1); y[1, 1] = v", "y = np.rot90(x); y[0] = s", "y = np.rot90(x, 3); y[0, 0] = s",
    "y = np.flip(x); y[0] = v", "a, b = np.split(x, 2, axis=1); a += b", "for r in x: r += v",
    "for i in range(3): x[i] *= i", "for i in range(1, 4): v[i] = v[i - 1] * s + v[i]", "a, b, c = x; a += b; b += c",
    "y = x.real; y += 1", "y = np.real(x); y[0] = s", "y = v.reshape(2, 2); y = y.T; y[0] = s", "y = x[0, 1]; y += 1",
    "y = x[0, 1, ...]; y += 1", "y = x[1:2, 1:2].reshape(()); y += 1", "y = x.T.reshape(-1); v += y[:4]",
    "y = x.T.ravel(); y[0] = 9.0; v += y[:4]", "y = x[:, ::2].reshape(-1); y[0] = 9.0",
    "y = x[:, 1:3].ravel(); y += 1", "y = v[::2].ravel(); y += 1", "y = v[::2].reshape(1, 2); y += 1",
    "y = t.reshape(6, 4); y[3:] = v", "y = t[:, 0].reshape(2, 2, 2); y[0] = s", "y = x.T.reshape(2, 2, 3); y[0] = s",
    "x.fill(s)", "x[0].fill(2)", "np.copyto(x, v)", "np.copyto(x, v, where=MASK)", "np.copyto(x[0], v * 2)",
    "np.copyto(x, 1, where=m)", "np.put(x, [1, -2], [5.0, 6.0])", "np.put(v, k, s)", "np.put(x, [0, 1, 2], v[:2])",
    "np.put(v, [5, -9], 1.0, mode='clip')", "np.place(x, MASK, v)", "np.place(x, m, [1.0, 2.0])",
    "np.putmask(x, MASK, v)", "np.putmask(x, m, s)", "np.fill_diagonal(x, s)", "np.fill_diagonal(x, v[:3])",
    "np.fill_diagonal(t[:, :2, :2], s)", "np.fill_diagonal(x.T, 1.0)", "np.fill_diagonal(x.T, 1.0, wrap=True)",
    "np.put_along_axis(x, np.array([[0], [1], [2]]), s, 1)",
    "np.put_along_axis(x, np.array([[1, 0, 1, 0]]), v, axis=0)", "np.put_along_axis(x, np.array([1, 3]), s, None)",
    "np.add.at(v, [0, 0, 1], s)", "np.add.at(x, (k, [0, 1, 1]), 1.0)", "np.add.at(x, [0, 0], v)",
    "np.subtract.at(v, k, v[:3])", "np.add.at(v, slice(1, 3), s)", "np.add.at(x, MASK, 1.0)", "np.add(x, v, out=x)",
    "np.multiply(x[0], 2, out=x[0])", "np.exp(x, out=x)", "np.sum(x, 0, out=v)", "np.cumsum(v, out=v)",
    "np.clip(x, 0, 1, out=x)", "np.add(x, 1, out=x, where=m)", "np.divide(v, x, out=x, where=MASK)",
    "np.log(x, out=x, where=x > 0)",
    "np.concatenate([x, x], out=t[:, 0].T if False else np.zeros_like(x, shape=(6, 4)))", "v.sort()", "x.sort(0)",
    "x.sort()", "x[0].sort()", "x[:, 1] = np.sort(x[:, 1])", "x.real = 1.0", "x.flat = v[0]",
    "x.T[0, 1] = s; x.T.T[2] = v", "x[0], x[1] = x[1].copy(), x[0].copy()", "x[0], x[1] = x[1], x[0]",
    "v[k] = v[k] + 1", "v[[0, 1]], v[2] = v[[1, 0]], s", "y = np.zeros_like(x); y[0] = v; y[1:, 0] = s; x += y",
    "y = np.empty_like(v); y[:] = 1; v *= y", "y = np.ones_like(k); y[0] = 2.7; v[:3] += y",
    "y = np.full_like(x, 2.0); z = y[1]; y[1, 0] = s; x += z", "y = x.mT; y[0] = s",
    "y = np.einsum('ij->ij', x); v += y[0]", "y = x[...]; y[0] = s", "y = x[:]; y += 1",
    "y = x.view if False else x; y[0, 0] = s", "y = t[0]; z = y[1]; z[2] = s; y[0] = z",
    "y = t.T[1:, ::-1]; y[0, 0] = s; y += y", "y = x.diagonal(); x[0, 0] = s; v[:3] += y",
    "y = np.broadcast_to(v, (3, 4)); v[0] = s; x += y", "y = np.diag(x); x += 1; v[:3] -= y",
    "y = x.T.flatten(); y += 1", "y = np.roll(x, 1); y += 1", "y = np.tile(v, 1); y += 1",
    "y = np.concatenate([x]); y += 1", "y = np.pad(x, 0); y += 1",
    "y = np.clip(x, None, None) if False else np.maximum(x, -9); y += 1", "y = np.nan_to_num(x); y += 1",
    "y = x.conj(); v += y[0]", "y = np.meshgrid(v, v)[0]; y += 1", "y = np.broadcast_arrays(x, v)[0]; v += y[0]",
    "y = np.asarray(x) if type(x) is np.ndarray else x; y[0] = s", "y = x.swapaxes(0, 1)[0]; y[:] = s",
    "y = x.repeat(1, axis=0); y += 1", "y = x.take([0, 1], 0); y += 1", "y = copy.copy(x); y += 1",
    "y = copy.deepcopy(x); y += 1", "y = np.nan_to_num(x, copy=False); y += 0",
    # What a mask selects is an array of its own.
    "y = x[m]; y[0] = s; x[m] = y", "y = x[m]; z = y; y *= 2; y += z; x[m] = y",
    "y = x[m]; z = y; y *= s; v[:2] = z[:2]", "y = x[m]; np.add(y, s, out=y); x[m] = y",
    "y = x[m]; y.fill(s); x[m] = y",
    "n = m[:]; y = x[n]; m[...] = m[:, ::-1]; x[n] = y", "y = x[m]; y[0] = s; y += x[m]; x[m] -= y",
    # An index counts as it is when it is used.
    "i = k[:1].reshape(()); y = x[i]; k[0] = 1; x[2] = v; v += y", "i = k[0]; y = x[i]; k[0] = 1; x[2] = v; v += y",
    # Numbers are immutable, so what is made of them is no view.
    "a = v[0]; b = np.atleast_1d(a); b += 1; v[1] = a", "a = x.sum(); b = a.reshape(1); b *= 2; v *= a",
    "a = v[0]; b = a[None]; b[0] = s; v[1] = a", "a = v[0] * 1j; b = a.imag; b += 1; v[1] = a.imag",
    "a = v[0]; b = np.squeeze(a); b += 1; v[1] = a", "a = v[0, ...]; b = a.reshape(1); b += 1",
    "y = np.einsum('ij->ji', x); y[0] = s", "y = np.einsum('ii->i', x[:, :3]); y *= s",
    "y = np.einsum('ij', x); y += s",
    "y = np.einsum('iji->ji', t[:, :, :2]); y[0] = s; t[0] = x; v[:2] += y[1]", "x.flat = v", "x.flat = x[::-1] * s",
    "np.put(x, 1, s)", "np.place(x, m, s)", "np.place(x, x > 0, v[0])", "x[0] = range(4)",
]  # fmt: skip


def statement_as_function(text: str) -> Callable[..., Any]:
    """A function that runs the statement and returns everything that it may have changed."""
    code = f"def f(x, v, t, s, k, m):\n  {text}\n  return x, v, t\n"
    namespace: dict[str, Any] = {"np": np, "MASK": MASK, "copy": copy}
    exec(compile(code, "<statement>", "exec"), namespace)
    return namespace["f"]  # type: ignore[no-any-return]


@tables.each(str, text=STATEMENTS)
def test_assignment_does_what_it_does_to_arrays(text: str) -> None:
    with np.errstate(all="ignore"):
        assert_same_as_numpy(statement_as_function(text), MATRIX, VECTOR, CUBE, NUMBER, COUNTS, MASK)


def random_index(choose: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A basic index of an array, with slices of either direction, new axes and an ellipsis."""
    items: list[Any] = []
    axis = 0
    while axis < len(shape) and choose.random() < 0.9:
        kind = choose.random()
        if kind < 0.15:
            items.append(None)
            continue
        if kind < 0.4 and shape[axis]:
            items.append(int(choose.integers(-shape[axis], shape[axis])))
        else:
            start, stop = (None if choose.random() < 0.4 else int(choose.integers(-4, 5)) for _ in range(2))
            items.append(slice(start, stop, int(choose.choice([1, 1, 2, -1, -2]))))
        axis += 1
    if choose.random() < 0.3:
        items.append(Ellipsis)
    return tuple(items)


def random_views(seed: int, base: Any) -> list[Any]:
    """A chain of views of views of `base`, some of which are assigned to on the way; all of them at the end."""
    choose = np.random.default_rng(seed)
    views = [base]
    for step in range(8):
        y = views[int(choose.integers(len(views)))]
        kind = choose.choice(["T", "index", "reshape", "ravel", "permute", "assign", "add"])
        if kind == "T":
            y = y.T
        elif kind == "index":
            y = y[random_index(choose, y.shape)]
        elif kind == "reshape":
            y = y.reshape(y.shape[::-1] if choose.random() < 0.5 else -1)
        elif kind == "ravel":
            y = y.ravel()
        elif kind == "permute":
            y = y.transpose(tuple(int(i) for i in choose.permutation(y.ndim)))
        elif kind == "assign" and y.ndim:
            y[random_index(choose, y.shape)] = step + 0.5
        elif kind == "add" and y.ndim:
            y += step
        if y.ndim:
            views.append(y)
    return [v * 1.0 for v in views]


@tables.each(str, seed=range(150))
def test_random_views_share_elements_as_in_numpy(seed: int) -> None:
    shape = tuple(int(n) for n in np.random.default_rng(seed).integers(1, 4, size=seed % 4 + 1))
    assert_same_as_numpy(lambda x: random_views(seed, x), np.arange(np.prod(shape), dtype=float).reshape(shape))


def test_a_traced_function_does_not_touch_its_argument() -> None:
    def f(x: Any) -> Any:
        x *= 2
        x[0] = 0.0
        return np.sum(x**2)

    x = np.ones(3)
    np.testing.assert_array_equal(ft.grad(f)(x), [0.0, 8.0, 8.0])
    np.testing.assert_array_equal(x, np.ones(3))


def masked_update(x: Any) -> Any:
    y = x * 1.0
    y[y < 0] = 0.0
    y[x > 1] += 2 * x[0]
    y[x > 1] *= 3.0
    return np.sum(y**2)


def test_assignment_under_a_traced_mask_needs_no_value_of_it() -> None:
    xs = np.array([[-1.0, 0.5, 2.0], [2.0, 3.0, -4.0]])
    each = [ft.grad(masked_update)(x) for x in xs]
    np.testing.assert_allclose(ft.vmap(ft.grad(masked_update))(xs), each)
    compiled = ft.jit(ft.grad(masked_update))
    for x, expected in zip(xs, each, strict=True):
        np.testing.assert_allclose(compiled(x), expected)


def test_elements_under_a_traced_mask_are_taken_where_values_are_known() -> None:
    x = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_array_equal(ft.jacobian(lambda x: x[x > 0] ** 2)(x), [[0.0, 1.0, 0.0], [0.0, 0.0, 4.0]])
    np.testing.assert_array_equal(ft.grad(lambda x: -np.sum(x[x > 0]) + x[x < 0].sum())(x), [1.0, -1.0, -1.0])
    np.testing.assert_array_equal(ft.vmap(lambda x: np.sum(x[x > 0]))(np.stack([x, -x])), [2.5, 1.0])
    with pytest.raises(ConcretizationError, match=r"shape.*\n.*\n.*where=mask"):
        ft.jit(ft.vmap(lambda x: np.sum(x[x > 0])))(np.stack([x, -x]))


def test_filling_an_array_made_by_ftrans() -> None:
    def f(x: Any) -> Any:
        a = fnp.zeros((2, 2))
        a[0, 0], a[1] = x[0], x[1:]
        b = fnp.full((2,), x[0])
        b[0] = fnp.ones(())
        return np.linalg.det(a) * b @ fnp.empty_like(b) + b @ b

    np.testing.assert_allclose(ft.grad(f)(np.array([3.0, 1.0, 2.0])), [6.0, 0.0, 0.0])
    assert type(fnp.zeros(2)) is np.ndarray
    assert type(fnp.full(2, 1.0)) is np.ndarray


def test_dtypes_are_kept_by_assignment() -> None:
    def f(x: Any, n: Any) -> Any:
        single = np.zeros_like(x, dtype=np.float32)
        single[0] = x[0]
        single += x
        n[0] = 2.7
        n += 1
        return single, n

    assert_same_as_numpy(f, VECTOR, COUNTS)


def test_a_scalar_is_immutable_and_an_array_without_axes_is_not() -> None:
    def f(x: Any) -> Any:
        a = x[0]
        b = a
        b += 1.0
        c = x.sum()
        d = c
        d *= 2.0
        return a, b, c, d

    assert_same_as_numpy(f, VECTOR)

    def g(x: Any) -> Any:
        y = x[1:2].reshape(())
        z = y
        z += 1.0
        z[...] = z * 2
        return x, y, z

    assert_same_as_numpy(g, VECTOR)


def integers_plus_floats(x: Any) -> None:
    n = np.zeros_like(x, dtype=int)
    n += x


def masked_integers_plus_floats(x: Any) -> None:
    n = np.ones_like(x, dtype=int)
    n[x > 0] += 0.5


def assigned_in_an_inner_function(x: Any) -> Any:
    y = np.zeros_like(x)

    def inner(z: Any) -> Any:
        y[0] = z
        return z

    return ft.grad(inner)(1.0)


def assigned_to_a_view_of_an_outer_value(x: Any) -> Any:
    def inner(z: Any) -> Any:
        part = x[1:]
        part += z
        return np.sum(part)

    return ft.grad(inner)(1.0)


def view_or_copy(x: Any) -> Any:
    y = np.sort(x, 0)
    flat = y.reshape(-1)
    flat[0] = 1.0
    return np.sum(y)


def base_changed_under_view_or_copy(x: Any) -> Any:
    y = np.sort(x, 0)
    flat = y.ravel()
    y[0, 0] = 1.0
    return np.sum(flat)


# (what happens, a function of a 3 by 4 matrix, the exception, phrases of its message in order)
ERRORS: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    ("index out of range", lambda x: x[5], IndexError, "index 5 is out of bounds for axis 0 with size 3"),
    ("index array out of range", lambda x: x[:, [0, 9]], IndexError, "index 9 is out of bounds for axis 1 with size 4"),
    ("assigned out of range", lambda x: x.__setitem__(-4, 0.0), IndexError, "index -4 is out of bounds for axis 0"),
    ("too many indices", lambda x: x[0, 0, 0], IndexError, "too many indices.*2-dimensional, but 3 were"),
    ("two ellipses", lambda x: x[..., ...], IndexError, "single ellipsis"),
    ("float index", lambda x: x[1.0], IndexError, "only integers, slices.*float64"),
    ("float array index", lambda x: x[np.array([0.0])], IndexError, "only integers, slices.*float64"),
    ("traced float index", lambda x: x[x[0, 0]], IndexError, "only integers, slices.*float64"),
    (
        "mask of another size",
        lambda x: x[np.array([True, False])],
        IndexError,
        "boolean index did not match.*size of axis is 3",
    ),
    (
        "traced mask of another size",
        lambda x: x[x[0] > 0],
        IndexError,
        "boolean index did not match.*size of axis is 3",
    ),
    ("index arrays that differ", lambda x: x[[0, 1], [0, 1, 2]], IndexError, r"broadcast together.*\(2,\) \(3,\)"),
    ("zero step", lambda x: x[::0], ValueError, "slice step cannot be zero"),
    ("assigned shape", lambda x: x.__setitem__(0, np.ones(3)), ValueError, r"from shape \(3,\) into shape \(4,\)"),
    ("complex into real", lambda x: x.__setitem__(0, 1j), TypeError, r"imaginary part; assign value\.real"),
    (
        "traced complex into real",
        lambda x: x.__setitem__(0, x[0] * 1j),
        TypeError,
        r"imaginary part; assign value\.real",
    ),
    (
        "float into int in place",
        integers_plus_floats,
        TypeError,
        "Cannot cast ufunc 'add'.*float64.*int64.*same_kind.*astype",
    ),
    ("float into int under a mask", masked_integers_plus_floats, TypeError, "Cannot cast ufunc 'add'.*float64.*int64"),
    ("in place, broadcast", lambda x: x[0].__iadd__(x), ValueError, "non-broadcastable output operand"),
    ("read-only broadcast", lambda x: np.broadcast_to(x, (2, 3, 4)).fill(0.0), ValueError, r"read-only.*\.copy\(\)"),
    ("read-only diagonal", lambda x: np.diagonal(x).__setitem__(0, 1.0), ValueError, r"read-only.*\.copy\(\)"),
    ("read-only imaginary part", lambda x: x.imag.fill(1.0), ValueError, r"read-only.*imag of real"),
    ("assigned to the shape", lambda x: setattr(x, "shape", (4, 3)), AttributeError, r"y\.reshape\(\(4, 3\)\)"),
    ("nothing to place", lambda x: np.place(x, MASK, []), ValueError, "no values to put into"),
    ("outer value", assigned_in_an_inner_function, ValueError, "enclosing function.*pure.*\n.*y\\[0\\] = z"),
    ("view of an outer value", assigned_to_a_view_of_an_outer_value, ValueError, "enclosing function.*\n.*part \\+= z"),
    ("view or copy", view_or_copy, ValueError, r"may or may not have changed it.*\.copy\(\).*\n.*flat\[0\] = 1"),
    ("view or copy, read", base_changed_under_view_or_copy, ValueError, r"may or may not have changed it.*\.copy\(\)"),
    ("out= a plain array", lambda x: np.add(x, 1, out=np.zeros((3, 4))), TypeError, r"np\.add.*np\.zeros_like\(x\)"),
    ("copyto a plain array", lambda x: np.copyto(np.zeros((3, 4)), x), TypeError, r"np\.copyto.*np\.zeros_like\(x\)"),
    ("add.at a plain array", lambda x: np.add.at(np.zeros(4), [0], x[0]), TypeError, r"add\.at.*np\.zeros_like\(x\)"),
    ("where= without out=", lambda x: np.log(x, where=x > 0), ValueError, r"out=np\.zeros_like\(x\).*np\.where"),
]


@pytest.mark.parametrize(
    ("function", "error", "message"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS]
)
def test_bad_assignments_say_why(function: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        ft.trace(function)(MATRIX)
    assert re.search(r"test_numpy_assignment\.py:\d+", str(caught.value))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.tensordot(x, x, 1),
        lambda x: np.linalg.tensordot(x, x, axes=1),
        lambda x: np.pad(x[0], 0),
        lambda x: np.select([x[0] > 5.0], [x[0]], x[1]),
    ],
)
def test_arrays_without_axes_are_shared(function: Any) -> None:
    def f(x: Any) -> Any:
        total = other = function(x)
        total += 1.0
        return other * x[0]

    x = np.array([2.0, 3.0])
    assert ft.value_and_grad(f)(x)[0] == f(x)


def test_numbers_are_assigned_to_by_masks() -> None:
    def f(x: Any) -> Any:
        total = np.sum(x * x)
        total[total > 5.0] = np.max(x)
        return total * x[0]

    for way in (lambda f: f, ft.jit):
        np.testing.assert_array_equal(way(ft.grad(f))(np.array([2.0, 3.0])), [3.0, 2.0])
        np.testing.assert_array_equal(way(ft.grad(f))(np.array([1.0, 1.0])), [4.0, 2.0])
    with pytest.raises(TypeError, match="assignment to a number"):
        ft.grad(lambda x: np.sum(x).__setitem__((), 1.0))(np.ones(2))


def test_a_doubtful_write_is_reported_where_the_layout_is_asked_for() -> None:
    def f(x: Any) -> Any:
        product = x.T @ x
        product.T.reshape(-1)[0] = 5.0
        return np.sum(product.ravel(order="K"))

    with pytest.raises(ValueError, match="may or may not have changed"):
        ft.grad(f)(np.ones((2, 3)))


def test_functions_named_as_those_of_numpy_are_the_users() -> None:
    def require(x: Any, requirements: str) -> Any:
        return np.array(x)

    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(require(x * 2.0, "W")))(np.ones(2)), [2.0, 2.0])
