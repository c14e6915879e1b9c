"""nn.generate: the tokens of the loop without a cache, from one compiled program, and their distribution."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import jax
import numpy as np
import pytest
import tables

from ftrans import nn

VOCABULARY, CONTEXT = 7, 12
X = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])


class Decoder(nn.Module):
    """A small decoder with learned positions."""

    def __init__(self) -> None:
        nn.manual_seed(3)
        self.tokens = nn.Embedding(VOCABULARY, 8)
        self.places = nn.Embedding(CONTEXT, 8)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), 1)
        self.head = nn.Linear(8, VOCABULARY)

    def new_cache(self, batch_size: int, max_length: int) -> Any:
        return self.layers.new_cache(batch_size, max_length)

    def forward(self, tokens: Any, caches: Any = None) -> Any:
        place = np.arange(tokens.shape[1])
        if caches is not None:
            place = place + caches[0].length
        x = self.tokens(tokens) + self.places(place)
        return self.head(self.layers(x, is_causal=True, cache=caches))


def greedy(model: Any, tokens: Any, count: int) -> Any:
    """The loop without a cache."""
    for _ in range(count):
        tokens = np.append(tokens, model(tokens)[:, -1].argmax(-1)[:, None], axis=1)
    return tokens


@pytest.fixture(scope="module")
def model() -> Decoder:
    return Decoder().eval()


@pytest.fixture
def compilations() -> Any:
    found = []

    def note(event: str, seconds: float, **options: Any) -> None:
        found.extend([1] if event == "/jax/core/compile/backend_compile_duration" else [])

    jax.monitoring.register_event_duration_secs_listener(note)
    yield lambda: len(found)
    jax.monitoring.unregister_event_duration_listener(note)


def test_greedy_is_the_loop_without_a_cache(model: Decoder, compilations: Any) -> None:
    expected = greedy(model, X, 7)
    np.testing.assert_array_equal(nn.generate(model, X, 7, temperature=0), expected)
    count = compilations()
    # Another length, other numbers, and other weights, are the same program.
    np.testing.assert_array_equal(nn.generate(model, X[:, :4], 6, temperature=0), greedy(model, X[:, :4], 6))
    model.head.bias.value = model.head.bias.value + np.arange(VOCABULARY, dtype=np.float32)
    np.testing.assert_array_equal(nn.generate(model, X + 1, 5, temperature=0), greedy(model, X + 1, 5))
    model.head.bias.value = model.head.bias.value - np.arange(VOCABULARY, dtype=np.float32)
    assert compilations() == count
    one = nn.generate(model, X[0].tolist(), 7, temperature=0)
    assert one.shape == (12,)
    np.testing.assert_array_equal(one, expected[0])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(nn.generate(other, X[0], 7, temperature=0), one)


def shares(model: Any, temperature: float = 1.0, top_k: int = VOCABULARY, top_p: float = 1.0) -> Any:
    """The probabilities of the token after the first prompt."""
    logits = model(X[:1])[0, -1].astype(np.float64) / temperature
    order = np.argsort(-logits)
    p = np.exp(logits) / np.exp(logits).sum()
    p[order[top_k:]] = 0
    p /= p.sum()
    before = np.cumsum(p[order]) - p[order]
    p[order[before >= top_p]] = 0
    return p / p.sum()


SETTINGS = [{"temperature": 0.5}, {"top_k": 5, "top_p": 0.5}, {"top_k": 3}, {"top_p": 0.6}]


@pytest.mark.parametrize("settings", SETTINGS if tables.whole else SETTINGS[:2])
def test_tokens_have_their_probabilities(model: Decoder, settings: dict[str, Any]) -> None:
    count = 4000
    out = nn.generate(model, np.repeat(X[:1], count, 0), 1, rng=nn.random.key(2), **settings)
    p = shares(model, **settings)
    found = np.bincount(out[:, -1], minlength=VOCABULARY)
    assert not found[p == 0].any()
    assert (p > 0).sum() > 1
    np.testing.assert_allclose(found / count, p, atol=5 * np.sqrt(0.25 / count))


def test_random_numbers(model: Decoder) -> None:
    first, second, other = (nn.generate(model, X, 6, rng=nn.random.key(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    stream = nn.RngState(0)
    first, second = (nn.generate(model, X, 6, rng=stream) for _ in range(2))
    assert (first != second).any()
    nn.manual_seed(1)
    first = nn.generate(model, X, 6)
    nn.manual_seed(1)
    np.testing.assert_array_equal(first, nn.generate(model, X, 6))


def test_sequences_end_at_a_stop(model: Decoder) -> None:
    whole = greedy(model, X, 7)
    # The stop is new to the first sequence where it ends; the prompt does not count.
    stop = int(whole[0, 6])
    ends = [5 + (row[5:] == stop).argmax() if (row[5:] == stop).any() else 11 for row in whole]
    out = nn.generate(model, X, 7, temperature=0, stop=stop)
    assert out.shape[1] == max(ends) + 1
    for row, found, end in zip(whole, out, ends, strict=True):
        np.testing.assert_array_equal(found[: end + 1], row[: end + 1])
        assert (found[end:] == found[end]).all()
    np.testing.assert_array_equal(nn.generate(model, X, 7, temperature=0, stop=[VOCABULARY + 1]), whole)


def test_a_model_is_not_kept() -> None:
    model = Decoder().eval()
    nn.generate(model, [1], 1, temperature=0)
    kept = weakref.ref(model)
    del model
    gc.collect()
    assert kept() is None


class Other(Decoder):
    def forward(self, tokens: Any, caches: Any = None) -> Any:
        return super().forward(tokens, caches)[:, -1]


WRONG: list[tuple[Any, Any, dict[str, Any], Any, str]] = [
    (lambda m: nn.Linear(1, 1), X, {}, TypeError, r"model\.new_cache\(batch_size, max_length\), which Linear does"),
    (lambda m: Decoder(), X, {}, ValueError, r"in training mode.*write model\.eval"),
    (lambda m: Other().eval(), X, {}, ValueError, r"of shape \(batch, length, vocabulary\), not f32\[2,7\]"),
    (lambda m: abs, X, {}, TypeError, r"nn\.generate takes a module"),
    (lambda m: m, X * 1.0, {}, TypeError, "a prompt holds integers"),
    (lambda m: m, [[1, 2], [3]], {}, ValueError, "sequences of a prompt must have the same length"),
    (lambda m: m, np.zeros((2, 0), int), {}, ValueError, "with at least one token"),
    (lambda m: m, X, {"max_new_tokens": 0}, ValueError, "max_new_tokens must be a positive integer, not 0"),
    (lambda m: m, X, {"temperature": -1}, ValueError, "temperature must be positive, or 0 for greedy"),
    (lambda m: m, X, {"top_k": 1.5}, ValueError, r"top_k must be a positive integer, not 1\.5"),
    (lambda m: m, X, {"top_p": 0}, ValueError, "top_p must be a probability"),
    (lambda m: m, X, {"stop": "."}, TypeError, r"stop is a token or a sequence of tokens, integers, not '\.'"),
    (lambda m: m, X, {"rng": 3}, TypeError, "generate takes a key"),
    (lambda m: m, X + 3, {}, FloatingPointError, "the logits after 4 tokens are NaN: a token is none of the voc"),
    (lambda m: m, X, {"max_new_tokens": 9}, FloatingPointError, "the logits after 13 tokens are NaN"),
]


@pytest.mark.parametrize(("make", "prompt", "options", "error", "text"), WRONG, ids=[row[4] for row in WRONG])
def test_wrong_arguments(model: Decoder, make: Any, prompt: Any, options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        nn.generate(make(model), prompt, **{"max_new_tokens": 7, "temperature": 0, **options})


def test_inside_of_a_trace(model: Decoder) -> None:
    with pytest.raises(TypeError, match="inside a function that is being traced, but it compiles its loop itself"):
        nn.jit(lambda model, x: nn.generate(model, x, 3))(model, X)
