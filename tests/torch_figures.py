"""Figures made with torch: results and gradients of layers and of functions, each array as two sums of its elements.

    python tests/torch_figures.py

writes `torch_figures.json` where torch is installed.  `test_torch_figures.py` compares this library with that file,
and the file with torch where it is installed.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import layer_samples
import numpy as np
from layer_samples import Integers, Numbers, Row

FILE = Path(__file__).parent / "torch_figures.json"
Figures = list[list[float]]

# Layers whose results are random in training, or that store nothing to compare.
RANDOM = ("Dropout", "RReLU", "dropout=0.3", "8, batch_first", "FractionalMaxPool")
# Behind other functions than log_softmax, the gradient of this loss is wrong in torch.
WITHOUT_GRADIENTS = ("CTCLoss",)

LAYERS = [row for row in layer_samples.ROWS if row.in_torch and not any(word in row.text for word in RANDOM)]

IMAGES = (2, 3, 5, 6)
PLACES = np.array([[[0, 3, 5]], [[1, 2, 4]]])
SAMPLES = np.array([[[0.1, 0.9, 0.4], [0.6, 0.2, 0.7]]])
# Calls of functions, and the arrays x, y and z in them.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "lp_pool1d(x, 3.0, 2, ceil_mode=True)": (Numbers((2, 3, 7), 0.1, 2.0),),
    "lp_pool2d(x, 2, (2, 3), stride=2)": (IMAGES,),
    "lp_pool3d(x, float('inf'), 2)": ((2, 3, 4, 5, 3),),
    "max_unpool1d(x, y, 2)": ((2, 1, 3), PLACES),
    "max_unpool1d(x, y, 2, output_size=(2, 1, 7))": ((2, 1, 3), PLACES),
    "max_unpool2d(*max_pool2d(x, 2, return_indices=True), 2, output_size=(5, 6))": (IMAGES,),
    "max_unpool3d(*max_pool3d(x, 2, return_indices=True), 2, 2, 0)": ((1, 2, 4, 2, 6),),
    "fractional_max_pool2d(x, 2, (3, 4), _random_samples=y)": ((1, 2, 5, 7), SAMPLES[..., :2]),
    "fractional_max_pool2d(x, (2, 3), output_ratio=(0.5, 0.6), return_indices=True, _random_samples=y)": (
        (1, 2, 6, 7),
        SAMPLES[..., 1:],
    ),
    "fractional_max_pool3d(x, 2, (2, 1, 3), _random_samples=y)": ((1, 2, 5, 4, 6), SAMPLES),
    "channel_shuffle(x, 2)": ((2, 6, 3),),
    **{
        f"interpolate(x, {size}, mode={mode!r}, align_corners={align}, antialias=True)": (IMAGES,)
        for mode in ("bilinear", "bicubic")
        for size, align in (("(2, 4)", False), ("(9, 3)", True))
    },
    "interpolate(x, scale_factor=0.4, mode='bicubic', antialias=True)": (IMAGES,),
    "upsample(x, scale_factor=2, mode='bicubic')": (IMAGES,),
    "upsample_nearest(x, size=(3, 7))": (IMAGES,),
    "upsample_bilinear(x, scale_factor=2)": (IMAGES,),
    "affine_grid(x, (2, 3, 4, 5), True)": ((2, 2, 3),),
    "affine_grid(x, (2, 3, 4, 1, 5), False)": ((2, 3, 4),),
    **{
        f"grid_sample(x, y, {mode!r}, {padding!r}, {align})": (IMAGES, Numbers((2, 3, 4, 2), -1.6, 1.6))
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for align in (False, True)
    },
    "grid_sample(x, y, 'bilinear', 'reflection', False)": ((2, 3, 4, 5, 3), Numbers((2, 2, 3, 4, 3), -1.6, 1.6)),
    "embedding(y, x, 2, scale_grad_by_freq=True)": ((7, 3), Integers((4, 5), 7)),
    **{
        f"embedding_bag(y, x, mode={mode!r}, padding_idx={index})": ((7, 3), Integers((4, 5), 7))
        for mode in ("mean", "sum", "max")
        for index in (None, -1)
    },
    **{
        f"embedding_bag(y, x, z, mode={mode!r}, padding_idx=3)": (
            (7, 3),
            Integers((9,), 7),
            np.array([0, 3, 3, 7]),
        )
        for mode in ("mean", "sum", "max")
    },
    "embedding_bag(y, x, mode='sum', per_sample_weights=z)": ((7, 3), Integers((4, 5), 7), (4, 5)),
    "relu(x, inplace=True)": (IMAGES,),
    "dropout(x, 0.5, False, True)": (IMAGES,),
    "triplet_margin_with_distance_loss(x, y, z, swap=True, margin=2.0)": ((4, 6), (4, 6), (4, 6)),
    "triplet_margin_with_distance_loss(x, y, z, distance_function=lambda a, b: abs(a - b).sum(-1), reduction='none')": (
        (4, 6),
        (4, 6),
        (4, 6),
    ),
}


def leaves(x: Any) -> list[Any]:
    """The arrays in a result."""
    if isinstance(x, tuple | list):
        return [leaf for y in x for leaf in leaves(y)]
    return [] if x is None else [x]


def total(out: Any, sin: Any) -> Any:
    """A number that depends on all floating-point elements of a result."""
    return sum(sin(leaf).sum() for leaf in leaves(out) if "float" in str(leaf.dtype))


def figures(arrays: list[Any]) -> Figures:
    """Two sums of the elements of each array, one with weights that no two elements share."""
    flat = [np.asarray(x, np.float64).ravel() for x in arrays]
    return [[float(x.sum()), float(x @ np.cos(0.7 * np.arange(x.size) + 0.3))] for x in flat]


def values(shape: tuple[int, ...], number: int) -> np.ndarray:
    """The values of a parameter."""
    return 0.5 * np.sin(np.arange(np.prod(shape, dtype=int)) + number + 1).reshape(shape)


def inputs_of(specs: tuple[Any, ...]) -> list[np.ndarray]:
    """The arrays x, y and z of a call."""
    return Row("", specs).arrays(np.float64)


def floats_of(specs: tuple[Any, ...], xs: list[np.ndarray]) -> list[int]:
    """Which inputs are differentiated: all that are drawn at random, and are no integers."""
    return [i for i, (spec, x) in enumerate(zip(specs, xs, strict=True)) if spec is not x and x.dtype.kind == "f"]


def of_torch() -> dict[str, Figures]:
    """The figures of all rows, made with torch."""
    import torch

    torch.backends.mha.set_fastpath_enabled(False)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in LAYERS:
            layer = row.make(torch.nn).double()
            with torch.no_grad():
                for i, parameter in enumerate(layer.parameters()):
                    parameter.copy_(torch.tensor(values(tuple(parameter.shape), i)))
            found[row.text] = _of_call(layer, row.inputs, list(layer.parameters()))
        for text, specs in FUNCTIONS.items():
            call = eval(f"lambda x, y=None, z=None: {text}", dict(vars(torch.nn.functional)))
            found[text] = _of_call(call, specs, [])
    return found


def _of_call(call: Any, specs: tuple[Any, ...], parameters: list[Any]) -> Figures:
    import torch

    arrays = inputs_of(specs)
    xs = [torch.tensor(x) for x in arrays]
    trained = [xs[i].requires_grad_() for i in floats_of(specs, arrays)]
    # Copies, which may be overwritten.
    out = call(*[x.clone() for x in xs])
    loss = total(out, torch.sin)
    gradients: list[Any] = []
    if loss.requires_grad:
        found = torch.autograd.grad(loss, [*trained, *parameters], allow_unused=True)
        gradients = [torch.zeros(()) if g is None else g for g in found]
    return figures([x.detach().numpy() for x in (*leaves(out), *gradients)])


def main() -> None:
    """Write the file."""
    rows = [f"{json.dumps(text)}: {json.dumps(_rounded(x))}" for text, x in of_torch().items()]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def _rounded(x: Figures) -> Figures:
    return [[float(f"{number:.11g}") for number in pair] for pair in x]


if __name__ == "__main__":
    main()
