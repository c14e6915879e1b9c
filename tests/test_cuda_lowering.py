"""Every primitive is lowered for CUDA, which needs no GPU, so that branches are tested which no CPU runs."""

from __future__ import annotations

from typing import Any

import control_samples  # noqa: F401
import jax
import jax.export
import linalg_samples  # noqa: F401
import numpy as np
import pytest
import samples  # noqa: F401
import special_samples_bessel  # noqa: F401
import special_samples_errors  # noqa: F401
import special_samples_gamma  # noqa: F401
from sampling import SAMPLES, Sample
from tables import covering, in_chunks, naming

import ftrans as ft
from ftrans.base.surroundings import NeedsHost, exporting
from ftrans.core.program import Program
from ftrans.xla.execute import lower

# What runs on the host of a GPU, and not on that of a CPU.
ONLY_THERE_ON_HOST = {"eig"}


def lowered(program: Program, platform: str) -> str:
    """StableHLO of a program for a platform."""
    types = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in program.in_types]
    with jax.enable_x64(True), exporting((platform,)):
        return jax.export.export(jax.jit(lambda *xs: lower(program, xs)), platforms=[platform])(*types).mlir_module()


def needs_host(program: Program, platform: str) -> bool:
    """Whether a program calls Python on this platform."""
    types = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in program.in_types]
    with jax.enable_x64(True), exporting((platform,)):
        try:
            jax.eval_shape(lambda *xs: lower(program, xs), *types)
        except NeedsHost:
            return True
    return False


@in_chunks(60, rows=covering(SAMPLES, lambda sample: sample.primitive.name))
def test_samples_are_lowered_for_cuda(rows: list[Sample]) -> None:
    for row in rows:
        with naming(row):
            program = row.program()
            try:
                text = lowered(program, "cuda")
            except NeedsHost:
                assert needs_host(program, "cpu") or row.primitive.name in ONLY_THERE_ON_HOST
            else:
                assert "@lapack_" not in text


def convolved(x: Any, kernel: Any) -> Any:
    """A sum over windows, which a CPU computes otherwise."""
    return ft.nn.functional.conv2d(x, kernel).sum()


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (ft.grad(convolved, argnums=(0, 1)), (np.ones((1, 1, 5, 5)), np.ones((1, 1, 3, 3)))),
        (ft.grad(lambda x: np.cumsum(np.sin(x)).prod()), (np.ones(5),)),
        (ft.hessian(lambda x: np.linalg.norm(np.linalg.solve(np.outer(x, x) + np.eye(3), x))), (np.ones(3),)),
        (ft.grad(ft.checkpoint(lambda x: np.exp(np.sin(x)).sum())), (np.ones(3),)),
        (ft.grad(lambda x: ft.scan(lambda c, a: (np.tanh(c + a), c), x, np.ones(4))[1].sum()), (1.0,)),
    ],
    ids=["convolution", "cumsum", "solve", "checkpoint", "scan"],
)
def test_derivatives_are_lowered_for_cuda(f: Any, args: tuple[Any, ...]) -> None:
    assert "stablehlo" in lowered(ft.trace(f)(*args), "cuda")


def test_a_program_for_one_platform_has_only_its_branch() -> None:
    program = ft.trace(ft.grad(ft.checkpoint(lambda x: np.exp(np.sin(x)).sum())))(np.ones(3))
    assert "stablehlo.case" in lowered(program, "cpu")
    assert "stablehlo.case" not in lowered(program, "cuda")
