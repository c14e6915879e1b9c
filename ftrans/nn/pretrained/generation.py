"""Generation: sequences continued token by token by a decoder model, whose keys and values are kept."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import numpy as fnp
from ...api.call import type_name
from ...api.loops import while_loop
from ...base.source import at_line, user_line
from ...core.trace import current_builder
from ..functional.arguments import described, shape_of
from ..functional.softmax import softmax
from ..init import generator
from ..modules.loading import as_numpy
from ..modules.module import Module
from ..modules.roots import graph_of_roots, modules_in, require_module
from ..modules.state import call_with_state
from ..random import categorical, fold_in, key, key_of
from ..transformations.jit import jit


class _Form(NamedTuple):
    """What the compiled program of a model depends on.

    Attributes:
        batch: number of sequences.
        chunk: how many tokens of the prompt are read at once; the rest is read one by one.
        capacity: how many tokens the program has room for.
        is_greedy: whether the likeliest token is chosen.
        is_cut: whether unlikely tokens are left out.
        stops: how many tokens end a sequence.
    """

    batch: int
    chunk: int
    capacity: int
    is_greedy: bool
    is_cut: bool
    stops: int


# The compiled functions of models; one for each form, since a function that is traced often warns.
_compiled: weakref.WeakKeyDictionary[Module, dict[_Form, Callable[..., Any]]] = weakref.WeakKeyDictionary()


def generate(
    model: Module,
    prompt: Any,
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop: int | Sequence[int] = (),
    rng: Any = None,
) -> np.ndarray[Any, Any]:
    """Continue sequences of tokens by a decoder model.

    The model keeps the keys and values of all tokens so far, so that a new one costs one row.  It is called as
    `model(tokens, caches)` with the next tokens, of shape (batch, n), and returns their logits, of shape (batch, n,
    vocabulary); `model.new_cache(batch, max_length)` makes the caches, as `nn.TransformerEncoder.new_cache` does.

    The whole loop is one compiled program.  It is used again for other weights and settings, and for other lengths of
    the prompt and the result up to the next power of two.

    Args:
        model: the model, in evaluation mode.
        prompt: integers of shape (batch, length), or (length,) for one sequence.
        max_new_tokens: how many tokens are added at most.
        temperature: the logits are divided by it before a token is drawn; 0 takes the likeliest token (greedy).
        top_k: draw from the `top_k` likeliest tokens only.
        top_p: draw from the smallest set of likeliest tokens that have together at least this probability (Holtzman et
            al., The curious case of neural text degeneration, 2020); after `temperature` and `top_k`.
        stop: tokens that end a sequence; it is filled up with the one that has ended it.
        rng: a key, or an `nn.RngState`; by default a new key from `nn.generator()`.

    Returns:
        The prompt with the new tokens, int64 of shape (batch, length + n) or (length + n,), where n is
        `max_new_tokens`, or less if all sequences have ended before.

    Raises:
        TypeError: the model has no `new_cache`, the prompt does not hold integers, or a function is being traced.
        ValueError: a number is out of range, the model is in training mode, or its logits are of another shape.
        FloatingPointError: the logits are NaN, as they are where a token or a position is none that the model knows.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> class Decoder(nn.Module):
        ...     def __init__(self):
        ...         self.tokens = nn.Embedding(10, 8)
        ...         self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)
        ...         self.head = nn.Linear(8, 10)
        ...     def new_cache(self, batch_size, max_length):
        ...         return self.layers.new_cache(batch_size, max_length)
        ...     def forward(self, tokens, caches=None):
        ...         return self.head(self.layers(self.tokens(tokens), is_causal=True, cache=caches))
        >>> nn.generate(Decoder().eval(), [1, 2, 3], max_new_tokens=4, temperature=0).shape
        (7,)
    """
    if current_builder() is not None:
        raise TypeError(
            "nn.generate was called inside a function that is being traced, but it compiles its loop itself and stops "
            f"where sequences end; call it outside of transformations{at_line(user_line())}"
        )
    _check_model(model)
    tokens, stops = _tokens(prompt), _stops(stop)
    count = _whole("max_new_tokens", max_new_tokens)
    _check_settings(temperature, top_k, top_p)
    batch, length = tokens.shape if tokens.ndim == 2 else (1, len(tokens))
    whole = 1 << (length + count - 1).bit_length()
    form = _Form(batch, 1 << length.bit_length() - 1, whole, temperature == 0, (top_k or top_p) is not None, len(stops))
    forms = _compiled.setdefault(model, {})
    run = forms.get(form)
    if run is None:
        run = forms.setdefault(form, jit(_program(form)))
    given = np.zeros((batch, whole), np.int64)
    given[:, :length] = tokens
    random = key(int(generator().integers(2**63))) if rng is None else key_of(rng, "generate")
    settings = _settings(temperature, top_k, top_p)
    found, end, is_nan = run(model, given, np.int64(length), np.int64(length + count), random, settings, stops)
    if is_nan:
        raise FloatingPointError(
            f"the logits after {int(end) - 1} tokens are NaN: a token is none of the vocabulary, the model does not "
            f"take so many positions, or its weights are not finite{at_line(user_line())}"
        )
    out = np.asarray(found)[:, : int(end)]
    return out if tokens.ndim == 2 else out[0]


def _program(form: _Form) -> Callable[..., Any]:
    """The function of a form, to be compiled."""

    def continued(model: Any, given: Any, length: Any, limit: Any, random: Any, settings: Any, stops: Any) -> Any:
        caches = model.new_cache(form.batch, form.capacity)
        graph = graph_of_roots([*modules_in(caches)])
        state = {path: cell.value for path, cell in zip(graph.paths, graph.cells, strict=True)}

        def read(tokens: Any, state: Any) -> tuple[Any, Any]:
            logits, state = call_with_state(graph, model, state, (tokens, caches), {})
            if shape_of(logits)[:2] != tuple(tokens.shape) or len(shape_of(logits)) != 3:
                raise ValueError(
                    f"generate takes a model whose logits for tokens of shape {tuple(tokens.shape)} are of shape "
                    f"(batch, length, vocabulary), not {described(logits)}{at_line(user_line())}"
                )
            return logits[:, -1].astype(np.float32), state

        def step(carry: Any) -> Any:
            tokens, place, logits, state, ended, _ = carry
            drawn = _drawn(form, fold_in(random, place), logits, settings)
            drawn = fnp.where(ended, tokens[:, place - 1], drawn)
            drawn = fnp.where(place < length, tokens[:, place], drawn)
            tokens = fnp.where(np.arange(form.capacity) == place, drawn[:, None], tokens)
            if form.stops:
                ended = ended | ((place >= length) & (drawn[:, None] == stops).any(axis=1))
            is_nan = fnp.isnan(logits).any()
            logits, state = read(drawn[:, None], state)
            return tokens, place + 1, logits, state, ended, is_nan

        def goes_on(carry: Any) -> Any:
            _, place, _, _, ended, is_nan = carry
            return (place < limit) & ~fnp.all(ended) & ~is_nan

        logits, state = read(given[:, : form.chunk], state)
        start = given, np.int64(form.chunk), logits, state, np.zeros(form.batch, np.bool_), np.bool_(False)
        tokens, place, _, _, _, is_nan = while_loop(goes_on, step, start)
        return tokens, place, is_nan

    return continued


def _drawn(form: _Form, random: Any, logits: Any, settings: Any) -> Any:
    """The next token of each sequence."""
    if form.is_greedy:
        return fnp.argmax(logits, axis=-1)
    temperature, top_k, top_p = settings
    logits = logits / temperature
    if form.is_cut:
        logits = fnp.where(logits < _least(logits, top_k, top_p), -np.inf, logits)
    return categorical(random, logits)


def _least(logits: Any, top_k: Any, top_p: Any) -> Any:
    """The least logit that may be drawn, of shape (batch, 1)."""
    falling = -fnp.sort(-logits, axis=-1)
    falling = fnp.where(np.arange(falling.shape[-1]) < top_k, falling, -np.inf)
    shares = softmax(falling, -1)
    is_kept = fnp.cumsum(shares, axis=-1) - shares < top_p
    return fnp.min(fnp.where(is_kept & (falling > -np.inf), falling, np.inf), axis=-1, keepdims=True)


# Arguments


def _settings(temperature: float, top_k: int | None, top_p: float | None) -> tuple[Any, Any, Any]:
    """The settings as inputs of the program, which is the same for all of them."""
    most = np.iinfo(np.int64).max if top_k is None else top_k
    return np.float32(temperature), np.int64(most), np.float32(1 if top_p is None else top_p)


def _check_model(model: Any) -> None:
    require_module(model, "nn.generate takes")
    if not callable(getattr(model, "new_cache", None)):
        raise TypeError(
            f"nn.generate calls model.new_cache(batch_size, max_length), which {type(model).__name__} does not have; "
            "define it, for instance as self.layers.new_cache(batch_size, max_length) of an nn.TransformerEncoder, and "
            f"give forward a second argument for the caches{at_line(user_line())}"
        )
    if model.training:
        raise ValueError(
            "nn.generate was given a model in training mode, where dropout would change what it says; write "
            f"model.eval(){at_line(user_line())}"
        )


def _check_settings(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if not 0 <= temperature < np.inf:
        raise ValueError(f"temperature must be positive, or 0 for greedy, not {temperature!r}{at_line(user_line())}")
    if top_k is not None:
        _whole("top_k", top_k)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be a probability, above 0 and at most 1, not {top_p!r}{at_line(user_line())}")


def _whole(name: str, x: Any) -> int:
    """A positive integer."""
    try:
        found = operator.index(x)
    except TypeError:
        found = 0
    if found < 1:
        raise ValueError(f"{name} must be a positive integer, not {x!r}{at_line(user_line())}")
    return found


def _tokens(prompt: Any) -> np.ndarray[Any, Any]:
    """The prompt as an array of integers."""
    try:
        found = as_numpy(prompt)
    except ValueError:
        raise ValueError(
            "the sequences of a prompt must have the same length; call generate for each of them, or for groups of "
            f"equal length{at_line(user_line())}"
        ) from None
    if found.dtype.kind not in "iu":
        raise TypeError(f"a prompt holds integers, not {type_name(prompt)} of {found.dtype}{at_line(user_line())}")
    if found.ndim not in (1, 2) or not found.size:
        raise ValueError(
            f"a prompt has the shape (batch, length), or (length,), with at least one token in each sequence, not "
            f"{found.shape}{at_line(user_line())}"
        )
    return found.astype(np.int64)


def _stops(stop: Any) -> np.ndarray[Any, Any]:
    found = np.atleast_1d(as_numpy(stop))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise TypeError(f"stop is a token or a sequence of tokens, integers, not {stop!r}{at_line(user_line())}")
    return found.astype(np.int64)
