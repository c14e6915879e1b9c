"""The problems of the benchmark `plain`: each form of a function has the same derivative."""

import functools

import jax
import numpy as np
import pytest

import ftrans as ft
from benchmarks.harness import require_agreement
from benchmarks.plain_problems import Problem, native, small_problems


@pytest.mark.parametrize("problem", small_problems(), ids=lambda problem: problem.label)
def test_forms_have_the_same_derivative(problem: Problem) -> None:
    arguments = problem.arguments(np.random.default_rng(0))
    function = functools.partial(problem.plain, np)
    ours = (problem.derive(ft, function) if problem.prepare is None else problem.prepare(function, arguments))(
        *arguments
    )
    with jax.enable_x64(True):
        careful = jax.jit(problem.derive_with_care(jax, functools.partial(problem.careful, jax)))(*arguments)
        if problem.prepare is None:
            plain = jax.jit(problem.derive(jax, functools.partial(problem.plain, jax.numpy)))(*arguments)
            require_agreement(plain, careful)
    require_agreement(ours, careful)
    if problem.cpp is not None and native.COMPILER is not None:
        require_agreement(problem.cpp(*arguments), careful)


@pytest.mark.skipif(native.COMPILER is None, reason="there is no compiler for C++")
def test_the_code_in_cpp_leaves_subnormal_numbers_as_they_are() -> None:
    for name in ("bundle_adjustment", "lstm", "mixture"):
        native.library(name)
    assert np.float64(5e-324) * 2.0 > 0.0
