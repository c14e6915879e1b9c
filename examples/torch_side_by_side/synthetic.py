"""The data of the programs, made by NumPy: digits and sentences.  Both forms of a program get the same arrays."""

import numpy as np

Array = np.ndarray

# Digits, five pixels wide and seven high; each number is a row, its bits are pixels.
_ROWS = (
    (14, 17, 19, 21, 25, 17, 14), (4, 12, 4, 4, 4, 4, 14), (14, 17, 1, 2, 4, 8, 31), (31, 2, 4, 2, 1, 17, 14),
    (2, 6, 10, 18, 31, 2, 2), (31, 16, 30, 1, 1, 17, 14), (6, 8, 16, 30, 17, 17, 14), (31, 1, 2, 4, 8, 8, 8),
    (14, 17, 17, 14, 17, 17, 14), (14, 17, 17, 15, 1, 2, 12),
)  # fmt: skip


def digits(count: int, size: int = 20, seed: int = 0) -> tuple[Array, Array]:
    """Images of digits at random places and of random brightness, with noise.

    Returns:
        Images, float32[count, 1, size, size] from 0 to 1, and digits, int64[count].
    """
    rng = np.random.default_rng(seed)
    glyphs = np.array([[[row >> 4 - i & 1 for i in range(5)] for row in rows] for rows in _ROWS], np.float32)
    glyphs = glyphs.repeat(2, axis=1).repeat(2, axis=2)
    kinds = rng.integers(10, size=count)
    images = 0.2 * rng.random((count, 1, size, size), np.float32)
    places = rng.integers((size - 13, size - 9), size=(count, 2))
    for image, kind, (row, column) in zip(images, kinds, places, strict=True):
        image[0, row : row + 14, column : column + 10] += rng.uniform(0.4, 0.8) * glyphs[kind]
    return images, kinds


# Words by what they are, in the singular and in the plural.
_NOUNS = [("cat", "cats"), ("dog", "dogs"), ("bird", "birds"), ("child", "children"), ("friend", "friends")]
_VERBS = [("sees", "see"), ("hears", "hear"), ("follows", "follow"), ("likes", "like"), ("knows", "know")]
_ADJECTIVES = ["old", "young", "small", "happy", "quiet", "clever"]
_DETERMINERS = [("a", "two"), ("the", "the"), ("this", "these"), ("every", "many")]


def sentences(count: int, seed: int = 0) -> list[list[str]]:
    """Sentences whose verbs agree with their subjects, as words; about half of them have a relative clause."""
    rng = np.random.default_rng(seed)

    def one_of(words):
        return words[rng.integers(len(words))]

    def noun(number, depth):
        clause = (
            ["that", one_of(_VERBS)[number], *noun(rng.integers(2), depth + 1)] if rng.random() < 0.5**depth else []
        )
        adjective = [one_of(_ADJECTIVES)] if rng.random() < 0.4 else []
        return [one_of(_DETERMINERS)[number], *adjective, one_of(_NOUNS)[number], *clause]

    def sentence(number):
        return [*noun(number, 2), one_of(_VERBS)[number], *noun(rng.integers(2), 2), "."]

    return [sentence(rng.integers(2)) for _ in range(count)]
