"""Distributions against torch: densities, moments, entropies, divergences and transforms, and the stored figures.

`python tests/test_torch_distributions.py` writes `distribution_figures.json`, which `test_nn_distributions.py` reads.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from distribution_rows import FIGURES, PAIRS, ROWS, TRANSFORMS, figures, made

torch = pytest.importorskip("torch")


def array(x: Any) -> Any:
    return torch.tensor(x, dtype=torch.float64)


def theirs(text: str) -> Any:
    """A row in torch."""
    import torch.distributions as of_torch
    from torch.distributions import transforms

    class Names:
        __all__ = (*of_torch.__all__, *transforms.__all__)

        def __getattr__(self, name: str) -> Any:
            return getattr(of_torch, name, None) or getattr(transforms, name)

    return made(text, Names(), array)


def rounded(f: Any) -> Any:
    """Figures to keep, or None where torch has none."""
    try:
        found = f()
    except (NotImplementedError, AttributeError, ValueError):
        return None
    return np.round(found.detach().numpy(), 12).tolist()


def of_torch() -> dict[str, Any]:
    """All figures."""
    before = torch.get_default_dtype()
    # Where torch makes numbers of its own they must have the dtype of ours.
    torch.set_default_dtype(torch.float64)
    try:
        return _of_torch()
    finally:
        torch.set_default_dtype(before)


def _of_torch() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text, values in ROWS:
        d = theirs(text)
        x = array(values)
        found[text] = {"log_prob": rounded(lambda d=d, x=x: d.log_prob(x)), "cdf": rounded(lambda d=d, x=x: d.cdf(x))}
        found[text] |= {name: rounded(lambda d=d, name=name: getattr(d, name)) for name in ("mean", "variance", "mode")}
        found[text]["entropy"] = rounded(d.entropy)
        found[text]["shapes"] = [list(d.batch_shape), list(d.event_shape)]
    for p, q in PAIRS:
        found[f"{p} | {q}"] = rounded(lambda p=p, q=q: torch.distributions.kl_divergence(theirs(p), theirs(q)))
    for text, values in TRANSFORMS:
        f, x = theirs(text), array(values)
        y = f(x)
        found[f"{text} of {values}"] = [
            rounded(lambda y=y: y),
            rounded(lambda f=f, x=x, y=y: f.log_abs_det_jacobian(x, y)),
        ]
    return found


def test_stored_figures_are_those_of_torch() -> None:
    stored, now = figures(), of_torch()
    assert stored.keys() == now.keys()
    for name, expected in now.items():
        flat, kept = (json.dumps(x) for x in (expected, stored[name]))
        if flat != kept:
            pairs = [(e, k) for e, k in zip(json.loads(flat).values(), json.loads(kept).values(), strict=True) if e]
            for e, k in pairs:
                np.testing.assert_allclose(np.array(k, float), np.array(e, float), rtol=1e-9, atol=1e-9)


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(x)}" for name, x in of_torch().items()]
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
