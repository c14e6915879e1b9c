"""Layers against torch: the same names, state dicts, results and gradients, and models exchanged as safetensors."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nn_utils_rows
import numpy as np
import pytest
from layer_samples import ROWS, Row

from ftrans import nn

torch = pytest.importorskip("torch")
safetensors_numpy = pytest.importorskip("safetensors.numpy")
safetensors_torch = pytest.importorskip("safetensors.torch")

TOLERANCE = 1e-5
# Random numbers are others than in torch.
RANDOM = ("Dropout", "RReLU", "dropout=0.3", "8, batch_first")


@pytest.fixture(autouse=True)
def _one_code_path() -> Iterator[None]:
    """In evaluation, torch would run other code for attention, which has no derivatives."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


def leaves(x: Any) -> list[Any]:
    """The arrays in a result."""
    if isinstance(x, tuple | list):
        return [leaf for y in x for leaf in leaves(y)]
    return [] if x is None else [x]


def total(out: Any, sin: Any) -> Any:
    """A number that depends on all elements of a result."""
    return sum(sin(leaf).sum() for leaf in leaves(out) if "float" in str(leaf.dtype))


def for_torch(inputs: list[np.ndarray]) -> tuple[list[Any], Any]:
    """Inputs for torch, and the first one before a copy of it is made, which may be overwritten."""
    first, *others = map(torch.tensor, inputs)
    return [first.requires_grad_(first.is_floating_point()).clone(), *others], first


def pair(row: Row) -> tuple[Any, Any]:
    """A layer, and that of torch with the same parameters."""
    torch.manual_seed(0)
    nn.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = row.make(torch.nn)
    ours = row.make()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def compare(ours: Any, theirs: Any, inputs: list[np.ndarray], **options: Any) -> None:
    """Compare results, gradients of parameters, and what the forward code leaves in buffers."""
    given, first = for_torch(inputs)
    theirs.zero_grad()
    expected = theirs(*given, **options)
    total(expected, torch.sin).backward()

    def loss(model: Any, x: Any) -> Any:
        out = model(x, *inputs[1:], **options)
        return total(out, np.sin), out

    (_, out), (gradients, *of_input) = nn.value_and_grad(
        loss, argnums=(0, 1) if first.requires_grad else (0,), has_aux=True
    )(ours, inputs[0])
    # Behind other functions than log_softmax, the gradient of this loss is wrong in torch.
    for g in of_input if not isinstance(theirs, torch.nn.CTCLoss) else []:
        np.testing.assert_allclose(g, first.grad, rtol=TOLERANCE, atol=TOLERANCE)
    for x, y in zip(leaves(out), leaves(expected), strict=True):
        np.testing.assert_allclose(x, y.detach(), rtol=TOLERANCE, atol=TOLERANCE)
    of_torch = {path: p.grad for path, p in theirs.named_parameters()}
    assert list(gradients) == list(of_torch)
    for path, g in gradients.items():
        np.testing.assert_allclose(g, of_torch[path], rtol=TOLERANCE, atol=TOLERANCE, err_msg=path)
    for path, x in ours.state_dict().items():
        np.testing.assert_allclose(x, theirs.state_dict()[path], rtol=TOLERANCE, atol=TOLERANCE, err_msg=path)


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.parametrize("row", [row for row in ROWS if row.in_torch], ids=lambda row: row.text)
def test_layers(row: Row) -> None:
    ours, theirs = pair(row)
    state = theirs.state_dict()
    assert [(p, x.shape, str(x.dtype)) for p, x in ours.state_dict().items()] == [
        (p, tuple(x.shape), str(x.dtype).removeprefix("torch.")) for p, x in state.items()
    ]
    assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")
    if any(word in row.text for word in RANDOM):
        ours.eval(), theirs.eval()
    compare(ours, theirs, row.arrays())
    compare(ours.eval(), theirs.eval(), row.arrays())


# Models, exchanged as files


def mlp(library: Any) -> Any:
    return library.Sequential(
        library.Linear(6, 16), library.ReLU(), library.Dropout(0.0), library.Linear(16, 8), library.Tanh(),
        library.Linear(8, 3),
    )  # fmt: skip


def cnn(library: Any) -> Any:
    return library.Sequential(
        library.Conv2d(1, 4, 3, padding=1), library.BatchNorm2d(4), library.ReLU(), library.MaxPool2d(2),
        library.Conv2d(4, 6, 3, bias=False), library.BatchNorm2d(6, momentum=None), library.GELU(),
        library.AdaptiveAvgPool2d(1), library.Flatten(), library.Linear(6, 3),
    )  # fmt: skip


def transformer(library: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library.Transformer(8, 2, 2, 2, 16, dropout=0.0, batch_first=True)


def lstm(library: Any) -> Any:
    return library.LSTM(5, 4, num_layers=2, bidirectional=True, batch_first=True)


def gru(library: Any) -> Any:
    return library.GRU(5, 4, num_layers=2)


MODELS = {
    "mlp": (mlp, [(5, 6)]),
    "cnn": (cnn, [(4, 1, 9, 9)]),
    "transformer": (transformer, [(2, 5, 8), (2, 4, 8)]),
    "lstm": (lstm, [(3, 7, 5)]),
    "gru": (gru, [(7, 3, 5)]),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_there_and_back(name: str, tmp_path: Path) -> None:
    make, shapes = MODELS[name]
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    theirs, ours = make(torch.nn), make(nn)
    # A few steps, so that biases and running statistics are not what they begin with.
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        total(theirs(*for_torch(inputs)[0]), torch.sin).backward()
        optimizer.step()
    theirs.zero_grad()
    file = str(tmp_path / "model.safetensors")
    safetensors_torch.save_file(theirs.state_dict(), file)
    assert ours.load_state_dict(safetensors_numpy.load_file(file)) == ([], [])
    compare(ours, theirs, inputs)
    back = make(torch.nn)
    safetensors_numpy.save_file(ours.state_dict(), file)
    back.load_state_dict(safetensors_torch.load_file(file))
    for x, y in zip(back.state_dict().values(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(x, y, rtol=TOLERANCE, atol=TOLERANCE)
    compare(ours.eval(), back.eval(), inputs)


def test_masks() -> None:
    row = Row("MultiheadAttention(6, 2, batch_first=True)", ((2, 3, 6), (2, 4, 6), (2, 4, 6)))
    ours, theirs = pair(row)
    rng = np.random.default_rng(0)
    padding = np.array([[False, False, False, True], [False, False, True, True]])
    blocked, added = np.triu(np.ones((3, 4), bool), 2), rng.normal(size=(4, 3, 4)).astype(np.float32)
    inputs = row.arrays()
    for options in (
        {"key_padding_mask": padding},
        {"attn_mask": blocked, "key_padding_mask": padding},
        {"attn_mask": added, "average_attn_weights": False},
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = theirs(
                *for_torch(inputs)[0],
                **{k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()},
            )
        for x, y in zip(ours(*inputs, **options), expected, strict=True):
            np.testing.assert_allclose(x, y.detach(), rtol=TOLERANCE, atol=TOLERANCE)


def test_initial_values_have_the_distributions_of_torch() -> None:
    nn.manual_seed(0)
    torch.manual_seed(0)
    for row in ROWS:
        large = row.text.replace("4, 6", "40, 60").replace("6, 2, 8", "60, 2, 80").replace("3, 4", "30, 40")
        if "groups" in large or not Row(large, ()).make().state_dict():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = Row(large, ()).make(torch.nn).state_dict()
        for path, x in Row(large, ()).make().state_dict().items():
            if x.size >= 100:
                expected = np.abs(theirs[path].numpy()).max(), theirs[path].numpy().std()
                found = np.abs(x).max(), x.std()
                np.testing.assert_allclose(found, expected, rtol=0.3, atol=1e-6, err_msg=f"{large} {path}")


def test_a_state_dict_of_bfloat16() -> None:
    theirs = torch.nn.Linear(3, 2).bfloat16()
    ours = nn.Linear(3, 2).bfloat16()
    ours.load_state_dict(theirs.state_dict())
    np.testing.assert_array_equal(ours.weight.value.astype(np.float32), theirs.weight.detach().float().numpy())


def test_figures_of_nn_utils() -> None:
    """What the tests of `nn.utils` compare with is what torch computes."""

    def flat(x: Any) -> Any:
        if isinstance(x, dict | list):
            return [leaf for y in (x.values() if isinstance(x, dict) else x) for leaf in flat(y)]
        return [np.nan if x is None else x]

    stored, found = json.loads(nn_utils_rows.FIGURES.read_text()), nn_utils_rows.figures_of_torch()
    assert list(stored) == list(found)
    for name, figures in found.items():
        np.testing.assert_allclose(flat(stored[name]), flat(figures), rtol=1e-6, atol=1e-9, err_msg=name)
