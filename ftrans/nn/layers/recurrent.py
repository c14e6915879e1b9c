"""Recurrent layers for whole sequences, and cells that compute a single step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ...base import tree
from ...base.source import at_line, user_line
from .. import functional as F
from .. import init
from ..cells.kinds import Parameter, RngState
from ..modules.module import Module
from ..packed import PackedSequence
from .arguments import empty, expect_last_axis, positive, put

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


def _fill(module: Module, hidden_size: int) -> None:
    bound = 1 / math.sqrt(hidden_size)
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


class _Recurrent(Module):
    """A stack of recurrent layers, in one direction or two."""

    # How many gates there are, so many times are weights as high as the hidden state.
    _gates: ClassVar[int]

    def _set_up(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        dtype: Any,
        proj_size: int = 0,
    ) -> None:
        positive(hidden_size=hidden_size, num_layers=num_layers)
        if not 0 <= dropout <= 1:
            raise ValueError(
                f"dropout={dropout} of {type(self).__name__} must be a probability, from 0 to 1" + at_line(user_line())
            )
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"proj_size={proj_size} of {type(self).__name__} must be less than hidden_size={hidden_size}, or 0 for "
                f"no projection{at_line(user_line())}"
            )
        self.proj_size = proj_size
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        rows, of_state = self._gates * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            size = of_state * (1 + bidirectional) if layer else input_size
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, size), "weight_hh": (rows, of_state)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for ending in self._endings(layer):
                for name, shape in shapes.items():
                    setattr(self, name + ending, empty(shape, dtype))
        self.rng = RngState() if dropout else None
        self.reset_parameters()

    def _endings(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    def reset_parameters(self) -> None:
        """Draw new initial values, uniformly between ±1 / sqrt(hidden_size)."""
        _fill(self, self.hidden_size)

    def _weights(self) -> list[tuple[Parameter, ...]]:
        names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else [])]
        names += ["weight_hr"] if self.proj_size else []
        endings = [ending for layer in range(self.num_layers) for ending in self._endings(layer)]
        return [tuple([getattr(self, name + ending) for name in names]) for ending in endings]

    def _settings(self) -> dict[str, Any]:
        """Arguments that all recurrent functions take."""
        between = None
        if self.training and self.dropout and self.rng is not None:
            keys = iter([self.rng.next_key() for _ in range(self.num_layers - 1)])

            def between(x: Any) -> Any:
                return F.dropout(x, self.dropout, True, rng=next(keys))

        return {"bidirectional": self.bidirectional, "batch_first": self.batch_first, "between": between}

    def _over(self, function: Callable[..., Any], input: Any, hx: Any, **more: Any) -> tuple[Any, Any]:
        """The result of a recurrent function for an array, or for a packed sequence."""
        if not isinstance(input, PackedSequence):
            expect_last_axis(self, input, self.input_size)
            return function(input, hx, self._weights(), **more, **self._settings())
        padded = input.padded()
        expect_last_axis(self, padded, self.input_size)
        first = None if hx is None else tree.map_leaves(input.in_packed_order, hx)
        settings = {**self._settings(), "batch_first": False}
        output, last = function(padded, first, self._weights(), **more, **settings, lengths=input.lengths)
        return input.with_padded(output), tree.map_leaves(input.in_given_order, last)

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        shown += [f"proj_size={self.proj_size}"] if self.proj_size else []
        shown += [f"num_layers={self.num_layers}"] if self.num_layers != 1 else []
        shown += ["bias=False"] if not self.bias else []
        shown += ["batch_first=True"] if self.batch_first else []
        shown += [f"dropout={self.dropout}"] if self.dropout else []
        shown += ["bidirectional=True"] if self.bidirectional else []
        return ", ".join(shown)


class RNN(_Recurrent):
    """A stack of layers `h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)`; see `functional.rnn`.

    Args:
        input_size: size D of the input.
        hidden_size: size H of the hidden state.
        num_layers: number of layers; each takes the outputs of the previous one.
        nonlinearity: "tanh" or "relu".
        bias: whether to have biases.
        batch_first: whether arrays are of shape (N, T, D) instead of (T, N, D).
        dropout: dropout probability of the outputs of all layers except the last, in training.
        bidirectional: whether each layer runs in both directions.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        weight_ih_l0: matrix of shape (H, D) of layer 0; also `weight_hh_l0`, `bias_ih_l0` and `bias_hh_l0`, those of
            further layers, and those of the reverse direction, which end in `_reverse`.
        rng: the stream of random numbers for dropout; None without dropout.

    Raises:
        ValueError: a size is not positive, or the nonlinearity is unknown.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> output, h = nn.RNN(3, 4, num_layers=2)(np.ones((7, 5, 3), np.float32))
        >>> output.shape, h.shape
        ((7, 5, 4), (2, 5, 4))
    """

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self.nonlinearity = _checked(nonlinearity)
        self._set_up(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype)
        put(self, device)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """`(output, h)`: the outputs of the last layer, and the final hidden states of all layers and directions.

        Args:
            input: array of shape (T, N, D), with `batch_first` (N, T, D), or (T, D) for one sequence; or a
                `PackedSequence` of N sequences, for which `output` is one, too.
            hx: initial hidden states, of shape (layers * directions, N, H); zeros by default.
        """
        return self._over(F.rnn, input, hx, nonlinearity=self.nonlinearity)


class LSTM(_Recurrent):
    """A stack of long short-term memory layers; see `functional.lstm`.

    Args:
        input_size: size D of the input.
        hidden_size: size H of the hidden state.
        num_layers: number of layers; each takes the outputs of the previous one.
        bias: whether to have biases.
        batch_first: whether arrays are of shape (N, T, D) instead of (T, N, D).
        dropout: dropout probability of the outputs of all layers except the last, in training.
        bidirectional: whether each layer runs in both directions.
        proj_size: size P that hidden states are projected to; 0 for no projection.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        weight_ih_l0: matrix of shape (4 H, D) of layer 0, with the gates input, forget, cell and output; the other
            names are those of `RNN`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> output, (h, c) = nn.LSTM(3, 4, bidirectional=True)(np.ones((7, 5, 3), np.float32))
        >>> output.shape, h.shape, c.shape
        ((7, 5, 8), (2, 5, 4), (2, 5, 4))
    """

    _gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self._set_up(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype, proj_size)
        put(self, device)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """`(output, (h, c))`: the outputs of the last layer, and the final states of all layers and directions.

        Args:
            input: array of shape (T, N, D), with `batch_first` (N, T, D), or (T, D) for one sequence; or a
                `PackedSequence` of N sequences, for which `output` is one, too.
            hx: a pair of initial hidden and cell states, each of shape (layers * directions, N, H); zeros by default.
        """
        return self._over(F.lstm, input, hx)


class GRU(_Recurrent):
    """A stack of gated recurrent unit layers; see `functional.gru`.  Arguments as for `LSTM`.

    Attributes:
        weight_ih_l0: matrix of shape (3 H, D) of layer 0, with the gates reset, update and new; the other names are
            those of `RNN`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> output, h = nn.GRU(3, 4, batch_first=True)(np.ones((5, 7, 3), np.float32))
        >>> output.shape, h.shape
        ((5, 7, 4), (1, 5, 4))
    """

    _gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self._set_up(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype)
        put(self, device)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """`(output, h)`: the outputs of the last layer, and the final hidden states of all layers and directions.

        Args:
            input: array of shape (T, N, D), with `batch_first` (N, T, D), or (T, D) for one sequence; or a
                `PackedSequence` of N sequences, for which `output` is one, too.
            hx: initial hidden states, of shape (layers * directions, N, H); zeros by default.
        """
        return self._over(F.gru, input, hx)


def _checked(nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"nonlinearity must be 'tanh' or 'relu', not {nonlinearity!r}{at_line(user_line())}")
    return nonlinearity


class _RecurrentCell(Module):
    """A single step of a recurrent layer."""

    _gates: ClassVar[int]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = np.float32
    ) -> None:
        positive(hidden_size=hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self._gates * hidden_size
        self.weight_ih = empty((rows, input_size), dtype)
        self.weight_hh = empty((rows, hidden_size), dtype)
        self.bias_ih = empty((rows,), dtype) if bias else None
        self.bias_hh = empty((rows,), dtype) if bias else None
        self.reset_parameters()
        put(self, device)

    def reset_parameters(self) -> None:
        """Draw new initial values, uniformly between ±1 / sqrt(hidden_size)."""
        _fill(self, self.hidden_size)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_RecurrentCell):
    """A single step of `RNN`.

    Args:
        input_size: size D of the input.
        hidden_size: size H of the hidden state.
        bias: whether to have biases.
        nonlinearity: "tanh" or "relu".
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        weight_ih: matrix of shape (H, D).
        weight_hh: matrix of shape (H, H).
        bias_ih: vector of shape (H,), or None.
        bias_hh: vector of shape (H,), or None.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.RNNCell(3, 4)(np.ones((5, 3), np.float32)).shape
        (5, 4)
    """

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self.nonlinearity = _checked(nonlinearity)
        put(self, device)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state, from an input of shape (N, D) or (D,) and a hidden state, zeros by default."""
        expect_last_axis(self, input, self.input_size)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return F.rnn_cell(input, hx, *weights, nonlinearity=self.nonlinearity)

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class LSTMCell(_RecurrentCell):
    """A single step of `LSTM`, with weights of shapes (4 H, D) and (4 H, H).

    Args:
        input_size: size D of the input.
        hidden_size: size H of the hidden state.
        bias: whether to have biases.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> h, c = nn.LSTMCell(3, 4)(np.ones((5, 3), np.float32))
        >>> h.shape, c.shape
        ((5, 4), (5, 4))
    """

    _gates = 4

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The next hidden and cell state, from an input (N, D) or (D,) and a pair of states; the default is zeros."""
        expect_last_axis(self, input, self.input_size)
        return F.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class GRUCell(_RecurrentCell):
    """A single step of `GRU`, with weights of shapes (3 H, D) and (3 H, H); arguments as for `LSTMCell`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.GRUCell(3, 4)(np.ones((5, 3), np.float32)).shape
        (5, 4)
    """

    _gates = 3

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state, from an input of shape (N, D) or (D,) and a hidden state, zeros by default."""
        expect_last_axis(self, input, self.input_size)
        return F.gru_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
