"""Writes docs/images/pattern_*.svg: the patterns of derivatives in three of the examples.

python docs/make_patterns.py
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import ftrans as ft  # noqa: E402


def example(name: str) -> ModuleType:
    """One of the examples, imported."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def patterns() -> dict[str, ft.Sparsity]:
    """The patterns, by the names of their files."""
    brusselator, cart_pole, bundle = map(example, ("brusselator", "cart_pole", "bundle_adjustment"))
    # Each camera sees six points in a row, of which the next one sees four.
    camera, shown = np.divmod(np.arange(60), 6)
    point = 2 * camera + shown
    scene = bundle.Scene(10, camera, point, np.zeros((60, 2)))
    path = cart_pole.straight(12)
    return {
        "pattern_brusselator": ft.jacobian_sparsity(lambda y: brusselator.reaction(0.0, y))(np.ones(2 * 8**2)),
        "pattern_cart_pole": ft.jacobian_sparsity(cart_pole.defects)(path),
        "pattern_bundle_adjustment": ft.jacobian_sparsity(scene.residuals)(np.ones(9 * 10 + 3 * (point.max() + 1))),
    }


def file_of(name: str) -> Path:
    return ROOT / "docs" / "images" / f"{name}.svg"


if __name__ == "__main__":
    for name, pattern in patterns().items():
        pattern.to_svg(file_of(name))
