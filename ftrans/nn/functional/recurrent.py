"""Recurrent networks: single steps, and whole sequences as loops by `ftrans.scan`.

Weights are laid out as in torch: the matrices of all gates are stacked, in the order input, forget, cell, output for
`lstm`, and reset, update, new for `gru`.  The products with all inputs are computed at once before the loop, and the
gradients of weights after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...api.loops import scan
from ...base.source import at_line, user_line
from ...numpy.promotion import result_dtype
from .activations import relu, sigmoid
from .arguments import array, concrete, described, shape_of
from .entry import functional
from .linear import linear

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn", "rnn_cell"]

# From what the inputs and the hidden state contribute to the gates, and the state, the next state.
Step = Callable[[Any, Any, tuple[Any, ...]], tuple[Any, ...]]
Weights = Sequence[Any]


def _rnn_step(nonlinearity: str, what: str) -> Step:
    functions: dict[str, Callable[[Any], Any]] = {"tanh": np.tanh, "relu": relu}
    if nonlinearity not in functions:
        raise ValueError(f"nonlinearity of {what} must be 'tanh' or 'relu', not {nonlinearity!r}{at_line(user_line())}")
    function = functions[nonlinearity]
    return lambda of_input, of_hidden, state: (function(of_input + of_hidden),)


def _lstm_step(of_input: Any, of_hidden: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
    gates = of_input + of_hidden
    size = shape_of(gates)[-1] // 4
    i, f, g, o = (gates[..., k * size : (k + 1) * size] for k in range(4))
    cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def _gru_step(of_input: Any, of_hidden: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
    size = shape_of(of_input)[-1] // 3
    gates = sigmoid(of_input[..., : 2 * size] + of_hidden[..., : 2 * size])
    reset, update = gates[..., :size], gates[..., size:]
    new = np.tanh(of_input[..., 2 * size :] + reset * of_hidden[..., 2 * size :])
    return (new + update * (state[0] - new),)


# Cells


@functional
def rnn_cell(
    input: Any,
    hx: Any,
    weight_ih: Any,
    weight_hh: Any,
    bias_ih: Any = None,
    bias_hh: Any = None,
    nonlinearity: str = "tanh",
) -> Any:
    """A single step of `rnn`: `tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)`.

    Args:
        input: array of shape (N, D) or (D,).
        hx: hidden state of shape (N, H) or (H,); None for zeros.
        weight_ih: matrix of shape (H, D).
        weight_hh: matrix of shape (H, H).
        bias_ih: vector of shape (H,).
        bias_hh: vector of shape (H,).
        nonlinearity: "tanh" or "relu".

    Returns:
        The next hidden state.

    Raises:
        ValueError: shapes do not match, or the nonlinearity is unknown.
    """
    step, weights = _rnn_step(nonlinearity, "rnn_cell"), (weight_ih, weight_hh, bias_ih, bias_hh)
    return _one_step("rnn_cell", step, 1, input, (hx,), weights)[0]


@functional
def lstm_cell(
    input: Any, hx: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any = None, bias_hh: Any = None
) -> tuple[Any, Any]:
    """A single step of `lstm`.

    Args:
        input: array of shape (N, D) or (D,).
        hx: a pair of hidden state and cell state, each of shape (N, H) or (H,); None for zeros.
        weight_ih: matrix of shape (4 H, D).
        weight_hh: matrix of shape (4 H, H).
        bias_ih: vector of shape (4 H,).
        bias_hh: vector of shape (4 H,).

    Returns:
        `(h, c)`, the next states.

    Raises:
        ValueError: shapes do not match.
    """
    hidden, cell = _one_step(
        "lstm_cell", _lstm_step, 4, input, _pair(hx, "lstm_cell"), (weight_ih, weight_hh, bias_ih, bias_hh)
    )
    return hidden, cell


@functional
def gru_cell(input: Any, hx: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any = None, bias_hh: Any = None) -> Any:
    """A single step of `gru`.

    Args:
        input: array of shape (N, D) or (D,).
        hx: hidden state of shape (N, H) or (H,); None for zeros.
        weight_ih: matrix of shape (3 H, D).
        weight_hh: matrix of shape (3 H, H).
        bias_ih: vector of shape (3 H,).
        bias_hh: vector of shape (3 H,).

    Returns:
        The next hidden state.

    Raises:
        ValueError: shapes do not match.
    """
    return _one_step("gru_cell", _gru_step, 3, input, (hx,), (weight_ih, weight_hh, bias_ih, bias_hh))[0]


def _pair(hx: Any, what: str) -> tuple[Any, Any]:
    if hx is None:
        return None, None
    if not isinstance(hx, tuple | list) or len(hx) != 2:
        raise TypeError(
            f"hx of {what} must be a pair (h, c) of hidden state and cell state, not "
            f"{described(hx)}{at_line(user_line())}"
        )
    return hx[0], hx[1]


def _one_step(
    what: str, step: Step, gates: int, input: Any, states: tuple[Any, ...], weights: Weights
) -> tuple[Any, ...]:
    input = array(input)
    weight_ih, weight_hh, bias_ih, bias_hh, _ = _checked(what, gates, shape_of(input)[-1], weights)
    shape = (*input.shape[:-1], shape_of(weight_hh)[1])
    state = _states(what, states, (shape,) * len(states), (input, weight_ih, weight_hh), f"(..., {shape[-1]})")
    return step(linear(input, weight_ih, bias_ih), linear(state[0], weight_hh, bias_hh), state)


def _states(
    what: str, given: Sequence[Any], shapes: Sequence[tuple[int, ...]], others: Sequence[Any], expected: str
) -> tuple[Any, ...]:
    """The given states, or zeros, in the dtype that a step with the other operands gives them."""
    for x, shape in zip(given, shapes, strict=True):
        if x is not None and shape_of(x) != shape:
            raise ValueError(
                f"hx of {what} must have shape {expected}, here {shape}, not {described(x)}" + at_line(user_line())
            )
    states = [None if x is None else array(x) for x in given]
    dtype = result_dtype(*others, *(x for x in states if x is not None))
    return tuple(
        np.zeros(shape, dtype) if x is None else x if x.dtype == dtype else x.astype(dtype)
        for x, shape in zip(states, shapes, strict=True)
    )


def _checked(what: str, gates: int, size: int, weights: Weights) -> list[Any]:
    """The weights of a layer in one direction, with checked shapes: biases, and a projection, which may be None."""
    projects = what == "lstm" and len(weights) in (3, 5)
    if len(weights) not in (2, 4) and not projects:
        raise ValueError(
            f"{what} takes (weight_ih, weight_hh, bias_ih, bias_hh), or the first two, for each layer and direction, "
            + ("and weight_hr behind them if states are projected, " if what == "lstm" else "")
            + f"not {len(weights)} arrays{at_line(user_line())}"
        )
    *given, weight_hr = weights if projects else (*weights, None)
    weight_ih, weight_hh, bias_ih, bias_hh = four = [*given, None, None][:4]
    of_state = shape_of(weight_hh)[-1] if shape_of(weight_hh) else 0
    hidden = of_state if weight_hr is None else shape_of(weight_hr)[-1]
    rows = gates * hidden
    many = f"{gates} * " if gates > 1 else ""
    found = [*four, weight_hr]
    for name, x, expected, meaning in (
        ("weight_hr", weight_hr, (of_state, hidden), "(P, H)"),
        ("weight_hh", weight_hh, (rows, of_state), f"({many}H, {'H' if weight_hr is None else 'P'})"),
        ("weight_ih", weight_ih, (rows, size), f"({many}H, D)"),
        ("bias_ih", bias_ih, (rows,), f"({many}H,)"),
        ("bias_hh", bias_hh, (rows,), f"({many}H,)"),
    ):
        if x is not None and shape_of(x) != expected:
            raise ValueError(
                f"{name} of {what} must be {meaning}, here {expected} for inputs of size D={size} and "
                f"weight_hh {described(weight_hh)}, not {described(x)}{at_line(user_line())}"
            )
    return found


# Sequences


@functional
def rnn(
    input: Any,
    hx: Any,
    weights: Sequence[Weights],
    nonlinearity: str = "tanh",
    bidirectional: bool = False,
    batch_first: bool = False,
    between: Callable[[Any], Any] | None = None,
    lengths: Any = None,
) -> tuple[Any, Any]:
    """A stack of recurrent layers `h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)` over sequences.

    Args:
        input: array of shape (T, N, D), with `batch_first` (N, T, D), or (T, D) for one sequence.
        hx: initial hidden states of all layers and directions, of shape (K, N, H), or (K, H) for one sequence; None for
            zeros.
        weights: for each of K layers and directions `(weight_ih, weight_hh, bias_ih, bias_hh)`, of shapes (H, D), (H,
            H), (H,), (H,); biases are optional.  The reverse direction of a layer follows the forward one.  After the
            first layer, D is the size of the outputs of the previous layer.
        nonlinearity: "tanh" or "relu".
        bidirectional: whether each layer runs in both directions.
        batch_first: whether the batch is axis 0.
        between: function that is applied to the outputs of all layers except the last, such as dropout.
        lengths: vector of N integers, the lengths of the sequences, each from 1 to T; the rest of a sequence is
            padding, which is not looked at.  By default all have length T.

    Returns:
        `(output, h)`: the outputs of the last layer, of shape (T, N, H) or (T, N, 2 H), laid out as `input`, zeros for
        padding; and the hidden states after the last element of each sequence, of the shape of `hx`.

    Raises:
        ValueError: shapes do not match, a length is not between 1 and T, or the nonlinearity is unknown.

    Example:
        >>> import ftrans.nn.functional as F
        >>> output, h = F.rnn(np.ones((3, 1)), None, [(np.eye(1), np.eye(1))], "relu")
        >>> output.ravel(), h
        (array([1., 2., 3.]), array([[3.]]))
    """
    step = _rnn_step(nonlinearity, "rnn")
    output, (hidden,) = _layers("rnn", step, 1, input, (hx,), weights, bidirectional, batch_first, between, lengths)
    return output, hidden


@functional
def lstm(
    input: Any,
    hx: Any,
    weights: Sequence[Weights],
    bidirectional: bool = False,
    batch_first: bool = False,
    between: Callable[[Any], Any] | None = None,
    lengths: Any = None,
) -> tuple[Any, tuple[Any, Any]]:
    """A stack of long short-term memory layers (Hochreiter and Schmidhuber, 1997) over sequences.

    Args:
        input: as for `rnn`.
        hx: a pair of initial hidden states and cell states, each as for `rnn`; None for zeros.
        weights: as for `rnn`, of shapes (4 H, D), (4 H, H), (4 H,), (4 H,); a fifth matrix of shape (P, H) projects
            hidden states to P elements, and the second is (4 H, P) then (Sak et al., 2014).
        bidirectional: as for `rnn`.
        batch_first: as for `rnn`.
        between: as for `rnn`.
        lengths: as for `rnn`.

    Returns:
        `(output, (h, c))`.

    Raises:
        ValueError: shapes do not match.
    """
    output, (hidden, cell) = _layers(
        "lstm", _lstm_step, 4, input, _pair(hx, "lstm"), weights, bidirectional, batch_first, between, lengths
    )
    return output, (hidden, cell)


@functional
def gru(
    input: Any,
    hx: Any,
    weights: Sequence[Weights],
    bidirectional: bool = False,
    batch_first: bool = False,
    between: Callable[[Any], Any] | None = None,
    lengths: Any = None,
) -> tuple[Any, Any]:
    """A stack of gated recurrent unit layers (Cho et al., 2014) over sequences.

    Args:
        input: as for `rnn`.
        hx: as for `rnn`.
        weights: as for `rnn`, of shapes (3 H, D), (3 H, H), (3 H,), (3 H,).
        bidirectional: as for `rnn`.
        batch_first: as for `rnn`.
        between: as for `rnn`.
        lengths: as for `rnn`.

    Returns:
        `(output, h)`.

    Raises:
        ValueError: shapes do not match.
    """
    output, (hidden,) = _layers(
        "gru", _gru_step, 3, input, (hx,), weights, bidirectional, batch_first, between, lengths
    )
    return output, hidden


def _layers(
    what: str,
    step: Step,
    gates: int,
    input: Any,
    first: tuple[Any, ...],
    weights: Sequence[Weights],
    bidirectional: bool,
    batch_first: bool,
    between: Callable[[Any], Any] | None,
    lengths: Any,
) -> tuple[Any, list[Any]]:
    x, ndim = array(input), len(shape_of(input))
    directions = 2 if bidirectional else 1
    if ndim not in (2, 3):
        raise ValueError(
            f"input of {what} must be (T, N, D), with N first if batch_first, or (T, D), not {described(input)}"
            + at_line(user_line())
        )
    if not weights or len(weights) % directions:
        raise ValueError(
            f"weights of {what} has entries for {len(weights)} layers and directions, which do not make layers "
            f"with {directions} direction{'s' * bidirectional} each{at_line(user_line())}"
        )
    x = np.swapaxes(x, 0, 1) if batch_first and ndim == 3 else x
    checked = [_checked(what, gates, shape_of(x)[-1], w) for w in weights[:directions]]
    # The first state may be projected, the cell state of an LSTM is not.
    sizes = [shape_of(checked[0][1])[1], shape_of(checked[0][1])[0] // gates][: len(first)]
    checked += [_checked(what, gates, directions * sizes[0], w) for w in weights[directions:]]
    lead = x.shape[1:-1]
    others = [x, *(w for of_layer in checked for w in of_layer if w is not None)]
    states = _states(
        what,
        first,
        [(len(weights), *lead, size) for size in sizes],
        others,
        "(layers * directions, N, H)" if lead else "(layers, H)",
    )
    inside = None if lengths is None else _inside(what, lengths, x.shape)
    last: list[tuple[Any, ...]] = []
    for layer in range(0, len(weights), directions):
        if layer and between is not None:
            x = between(x)
        outputs = []
        for k in range(layer, layer + directions):
            ends, ys = _loop(step, x, checked[k], tuple(s[k] for s in states), inside, reverse=k > layer)
            outputs.append(ys)
            last.append(ends)
        x = outputs[0] if directions == 1 else np.concatenate(outputs, axis=-1)
    x = np.swapaxes(x, 0, 1) if batch_first and ndim == 3 else x
    return x, [np.stack(column) for column in zip(*last, strict=True)]


def _inside(what: str, lengths: Any, shape: Sequence[int]) -> Any:
    """Whether a step of a sequence is before its end, of shape (T, N, 1), for inputs of shape (T, N, D)."""
    lengths = array(lengths)
    if len(shape) != 3 or shape_of(lengths) != (shape[1],) or lengths.dtype.kind not in "iu":
        many = f"{shape[1]} integers" if len(shape) == 3 else "a batch of sequences"
        raise ValueError(
            f"lengths of {what} goes with {many}, one for each sequence, not {described(lengths)}{at_line(user_line())}"
        )
    values = concrete(lengths)
    if values is not None and values.size and not 1 <= values.min() <= values.max() <= shape[0]:
        raise ValueError(
            f"lengths of {what} must be from 1 to T={shape[0]}, not {values.tolist()}; leave out empty sequences"
            + at_line(user_line())
        )
    return (np.arange(shape[0])[:, None] < lengths)[..., None]


def _loop(
    step: Step, x: Any, weights: Weights, state: tuple[Any, ...], inside: Any, reverse: bool
) -> tuple[tuple[Any, ...], Any]:
    """One layer in one direction: its final states, and all its outputs.

    Where `inside` is False, the state stays as it was, so a reverse direction begins at the end of each sequence.
    """
    weight_ih, weight_hh, bias_ih, bias_hh, weight_hr = weights

    def body(state: tuple[Any, ...], of_input: Any) -> tuple[tuple[Any, ...], Any]:
        state = step(of_input, linear(state[0], weight_hh, bias_hh), state)
        if weight_hr is not None:
            state = (linear(state[0], weight_hr), *state[1:])
        return state, state[0]

    def masked(state: tuple[Any, ...], given: Any) -> tuple[tuple[Any, ...], Any]:
        of_input, is_inside = given
        new, output = body(state, of_input)
        kept = tuple(np.where(is_inside, a, b) for a, b in zip(new, state, strict=True))
        return kept, np.where(is_inside, output, np.zeros((), output.dtype))

    of_inputs = linear(x, weight_ih, bias_ih)
    if inside is None:
        ends, outputs = scan(body, state, of_inputs, reverse=reverse)
    else:
        ends, outputs = scan(masked, state, (of_inputs, inside), reverse=reverse)
    return ends, outputs
