"""examples/torch_side_by_side: the losses of both forms of each program, where torch is installed."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from test_two_forms import FORMS, LOSSES, compare

pytest.importorskip("torch")

__all__ = ["compare"]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_losses(compare: ModuleType, name: str, form: str) -> None:
    theirs, ours = compare.curves(name, 20, form)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    np.testing.assert_allclose(theirs[: len(LOSSES[name])], LOSSES[name], rtol=1e-6)
