"""A problem of the measure `plain`: one function, written plainly and written with care for the compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from numpy.random import Generator

Derive = Callable[[ModuleType, Callable[..., Any]], Callable[..., Any]]


def gradient(library: ModuleType, function: Callable[..., Any]) -> Callable[..., Any]:
    return library.grad(function)


@dataclass(frozen=True)
class Targets:
    """What ftrans is to take at most, as a multiple of each: for a call, and until the first result."""

    careful: float | None = None
    plain: float | None = None
    cpp: float | None = None
    first: float | None = None
    first_seconds: float | None = None


@dataclass(frozen=True)
class Problem:
    """A function in its forms, and what it is called with.

    Attributes:
        label: what tables call it.
        plain: `plain(np, params, *data)`, as somebody writes it who thinks of NumPy only.
        careful: `careful(jax, params, *data)`, restructured by hand for XLA.
        arguments: `params` and data, drawn at random; `params` is an array or a tuple of arrays.
        targets: what is aimed at.
        derive: the derivative in `params`, by `ftrans` or by `jax`.
        derive_with_care: the same for the careful form.
        prepare: makes the derivative by ftrans, for certain arguments; None for `jit(derive(ftrans, plain))`.
        cpp: the same derivative by C++, of the arguments; an error of `native.py` where there is no compiler.
        is_for_jax: whether JAX takes the plain form, and compiles it in less than minutes.
    """

    label: str
    plain: Callable[..., Any]
    careful: Callable[..., Any]
    arguments: Callable[[Generator], tuple[Any, ...]]
    targets: Targets
    derive: Derive = gradient
    derive_with_care: Derive = gradient
    prepare: Callable[[Callable[..., Any], tuple[Any, ...]], Callable[..., Any]] | None = None
    cpp: Callable[..., Any] | None = None
    is_for_jax: bool = True
