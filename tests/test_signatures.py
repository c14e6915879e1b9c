"""The parameters of the functions of `ftrans.numpy`: NumPy's, by position and by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest
import tables
from function_rows import Row, rows

import ftrans as ft
import ftrans.numpy as fnp
from ftrans.base import tree

ARRAYS = {"": np, "linalg.": np.linalg, "fft.": np.fft}
# What the functions of `ftrans.numpy` have no use for: subclasses, protocols and how an array is printed.
LEFT_OUT = {"like", "subok", "ndmax", "max_work"}


def public(name: str) -> Any:
    return functools.reduce(getattr, name.split("."), fnp)


def functions() -> list[str]:
    names = {
        prefix + name
        for prefix, module in ARRAYS.items()
        for name in getattr(public(prefix[:-1]) if prefix else fnp, "__all__", ())
        if callable(getattr(module, name, None)) and not isinstance(getattr(module, name), type)
    }
    return sorted(name for name in names if signature_of(functools.reduce(getattr, name.split("."), np)) is not None)


def signature_of(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


@tables.each(str, name=functions())
def test_every_parameter_of_numpy_is_one(name: str) -> None:
    theirs = inspect.signature(functools.reduce(getattr, name.split("."), np)).parameters.values()
    ours = inspect.signature(public(name)).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in ours.values())
    for p in theirs:
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in LEFT_OUT:
            assert takes_any or p.name in ours
            if p.name in ours:
                assert ours[p.name].kind is not p.POSITIONAL_ONLY or name.startswith("unique_")


UFUNCS = [name for name in fnp.__all__ if isinstance(getattr(np, name, None), np.ufunc)]


@tables.each(str, name=UFUNCS)
def test_ufuncs_have_named_operands(name: str) -> None:
    ours = inspect.signature(getattr(fnp, name))
    theirs = signature_of(getattr(np, name))
    if theirs is not None:
        # Older versions of NumPy do not tell.
        assert str(ours) == str(theirs)
    operands = [p for p in ours.parameters.values() if p.kind is p.POSITIONAL_ONLY]
    assert [p.name for p in operands] == (["x"] if len(operands) == 1 else ["x1", "x2"])
    standard = getattr(array_api_strict, name, None)
    if standard is not None:
        needed = [p for p in inspect.signature(standard).parameters.values() if p.default is p.empty]
        assert [(p.name, p.kind) for p in operands] == [(p.name, p.kind) for p in needed]


# Calls by name


def by_name(function: Any, signature: inspect.Signature) -> Callable[..., Any]:
    """The function, called with names for all that can have one."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        kinds = {name: signature.parameters[name].kind for name in given}
        places = [x for name, x in given.items() if kinds[name] is inspect.Parameter.POSITIONAL_ONLY]
        names = {name: x for name, x in given.items() if kinds[name] in (_NAMED, inspect.Parameter.KEYWORD_ONLY)}
        return function(*places, **names)

    return call


_NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD


def rows_by_name() -> dict[str, Row]:
    """One call of each function whose arguments all may have names."""
    found: dict[str, Row] = {}
    for row in rows():
        name = row.name.removeprefix("numpy.")
        if name == row.name or name.startswith("unique_"):
            continue
        signature = signature_of(functools.reduce(getattr, name.split("."), np))
        parameters = [] if signature is None else signature.parameters.values()
        has_places = all(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        if has_places and any(p.kind is _NAMED and p.default is p.empty for p in parameters):
            found.setdefault(name, row)
    return found


ROWS_BY_NAME = rows_by_name()


@tables.each(str, name=list(ROWS_BY_NAME))
def test_arguments_have_numpys_names(name: str) -> None:
    row, operands = ROWS_BY_NAME[name], ROWS_BY_NAME[name].draw()
    theirs = functools.reduce(getattr, name.split("."), np)
    expected = row.reference(operands)
    for function in (theirs, public(name)):
        named = functools.partial(by_name(function, inspect.signature(theirs)), **row.params)

        def call(*xs: Any, named: Any = named) -> list[Any]:
            made = row.call(named, *xs) if row.call else named(*xs)
            return row.canonical([fnp.asarray(y) for y in tree.flatten(made)[0]])

        for results in (ft.trace(call)(*operands)(*operands), call(*(np.array(x)[()] for x in operands))):
            for x, y in zip(results, expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_where_takes_names() -> None:
    x = np.array([1.0, -2.0])
    np.testing.assert_array_equal(fnp.where(condition=x > 0, x=x, y=0.0), [1.0, 0.0])
    for call in (
        lambda x: fnp.where(condition=x > 0, x=x, y=0.0),
        lambda x: fnp.where(x > 0, y=0.0, x=x),
        lambda x: fnp.where(x > 0, x, 0.0),
    ):
        np.testing.assert_array_equal(ft.grad(lambda x, call=call: np.sum(call(x)))(x), [1.0, 0.0])
    np.testing.assert_array_equal(ft.trace(lambda x: fnp.where(condition=x > 0))(x)(x)[0], [0])
    for call in (lambda x: fnp.where(x > 0, y=0.0), lambda x: np.where(x > 0, x)):
        with pytest.raises(ValueError, match=r"either both or neither(.|\n)*test_signatures\.py"):
            ft.trace(call)(x)
    with pytest.raises(ValueError, match="either both or neither"):
        fnp.where(x > 0, x=1.0)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe", "typo", 0, None])
@pytest.mark.parametrize("dtype", [float, np.float32, int, bool, complex])
def test_casting(casting: Any, dtype: Any) -> None:
    """The rule of a ufunc for casting is that of its operands, too, and one that does not exist is an error."""
    x = np.ones((2, 2), dtype)
    for ufunc in (np.sin, np.add, np.matmul, np.logical_and, np.power):

        def call(x: Any, ufunc: Any = ufunc) -> Any:
            return ufunc(*(x,) * ufunc.nin, casting=casting)

        try:
            expected = call(x)
        except (TypeError, ValueError) as error:
            with pytest.raises(ValueError if type(error) is ValueError else TypeError, match=r"test_signatures\.py"):
                ft.trace(call)(x)
        else:
            found = ft.trace(call)(x)(x)[0]
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("function", [np.array2string, np.array_repr, np.array_str])
def test_options_of_printing(function: Any) -> None:
    x = np.array([1.0 / 3, 2.0])
    seen: list[str] = []
    ft.grad(lambda x: (seen.append(function(x, precision=2)), np.sum(x))[1])(x)
    assert seen == [function(x, precision=2)]
    # Where there is no number to print, there is a type.
    ft.vmap(lambda x: (seen.append(function(x, precision=2)), x)[1])(x)
    assert seen[1] == "Traced(f64[])"


@pytest.mark.parametrize("axes", [0, -1, (0,), (), (0, 1), 5, (0, -1), -5, 1.5])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_apply_over_axes(axes: Any, shape: tuple[int, ...]) -> None:
    """As in NumPy, the function says what it thinks of an axis, of a number for instance."""
    x = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)
    for function in (np.sum, np.cumsum, np.max):
        for namespace in (np, fnp):

            def call(x: Any, namespace: Any = namespace, function: Any = function) -> Any:
                return namespace.apply_over_axes(function, x, axes)

            try:
                expected = call(x)
            except (ValueError, TypeError) as error:
                with pytest.raises(type(error)):
                    ft.trace(call)(x)
            else:
                np.testing.assert_array_equal(ft.trace(call)(x)(x)[0], expected, strict=np.ndim(expected) > 0)
