"""Distributions: figures of torch and SciPy, samples and their derivatives, and one meaning in all modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from distribution_rows import PAIRS, ROWS, TRANSFORMS, figures, made

from ftrans.nn import distributions as D

FIGURES = figures()


def ours(text: str) -> Any:
    return made(text, D, np.array)


def close(found: Any, expected: Any, rtol: float = 1e-7, atol: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=rtol, atol=atol)


# Torch's figures

# Where torch has no mode although there is one, and where its Bessel functions have six digits.
BETTER = {"FisherSnedecor": "mode", "Weibull": "mode", "Kumaraswamy": "mode"}


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_figures_of_torch(text: str, values: Any) -> None:
    d, expected = ours(text), FIGURES[text]
    assert [list(d.batch_shape), list(d.event_shape)] == expected["shapes"]
    for name, figure in expected.items():
        if name == "shapes" or figure is None or BETTER.get(text.partition("(")[0]) == name:
            continue
        if name in ("log_prob", "cdf"):
            close(getattr(d, name)(np.array(values)), figure)
        else:
            rtol = 1e-5 if "VonMises" in text else 1e-7
            close(d.entropy() if name == "entropy" else getattr(d, name), figure, rtol)


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergences_of_torch(p: str, q: str) -> None:
    close(D.kl_divergence(ours(p), ours(q)), FIGURES[f"{p} | {q}"])


@pytest.mark.parametrize(("text", "values"), TRANSFORMS)
def test_transforms_of_torch(text: str, values: Any) -> None:
    f, x = ours(text), np.array(values)
    y, slope = FIGURES[f"{text} of {values}"]
    close(f(x), y)
    close(f.log_abs_det_jacobian(x, f(x)), slope)
    close(f.inv(f(x)), x)
    assert f.forward_shape(x.shape) == np.shape(y)
    assert f.inverse_shape(np.shape(y)) == x.shape
    if "Cat" not in text and "Stack" not in text and f.domain.event_dim <= 1 and "of" not in text:
        first = x[0] if f.domain.event_dim < x.ndim and x.ndim > 1 else x
        assert np.all(f.codomain.check(f(first)))
