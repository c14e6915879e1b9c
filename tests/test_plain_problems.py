"""The problems of the benchmark `plain`: each form of a function has the same derivative."""

import functools

import jax
import numpy as np
import pytest

import ftrans as ft
from benchmarks.harness import require_agreement
from benchmarks.plain_problems import Problem, small_problems


@pytest.mark.parametrize("problem", small_problems(), ids=lambda problem: problem.label)
def test_forms_have_the_same_derivative(problem: Problem) -> None:
    arguments = problem.arguments(np.random.default_rng(0))
    ours = problem.derive(ft, functools.partial(problem.plain, np))(*arguments)
    with jax.enable_x64(True):
        plain = jax.jit(problem.derive(jax, functools.partial(problem.plain, jax.numpy)))(*arguments)
        careful = jax.jit(problem.derive_with_care(jax, functools.partial(problem.careful, jax)))(*arguments)
    require_agreement(ours, careful)
    require_agreement(plain, careful)
