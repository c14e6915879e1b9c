"""Sequences of different lengths: padded to one length, and packed for recurrent layers, as in `torch.nn.utils.rnn`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from ... import numpy as fnp
from ...base.cell import read
from ...base.source import at_line, user_line
from ..functional.arguments import array, concrete, described, shape_of
from ..packed import PackedSequence, PaddedSequence, order_of

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences, so that recurrent layers leave out the padding.

    Args:
        input: array of shape (T, N, ...), with `batch_first` (N, T, ...).
        lengths: vector of N integers, the lengths of the sequences, from 1 to T.  Where they are traced, as arguments
            of a compiled function, one program serves all lengths, but the packed sequence has no `data`, and nothing
            checks them: a sequence of length 0 is empty, one that is longer than T ends with the array.
        batch_first: whether the batch is axis 0.
        enforce_sorted: whether the lengths must not increase; otherwise the sequences are sorted, and recurrent layers
            and `pad_packed_sequence` put what they return back in order.

    Returns:
        The packed sequences.

    Raises:
        ValueError: a length is not between 1 and T, there are not N of them, or they increase and `enforce_sorted` is
            set.

    Example:
        >>> import numpy as np
        >>> from ftrans.nn.utils.rnn import pack_padded_sequence
        >>> pack_padded_sequence(np.array([[1, 2], [3, 0]]), [2, 1], batch_first=True).data
        array([1, 3, 2])
    """
    x, lengths = _steps_first(input, "pack_padded_sequence", batch_first), array(read(lengths))
    if shape_of(lengths) != (x.shape[1],) or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"lengths of pack_padded_sequence must be {x.shape[1]} integers, one for each sequence in {described(x)}, "
            f"not {described(lengths)}{at_line(user_line())}"
        )
    values = concrete(lengths)
    if values is None:
        return PaddedSequence(x, lengths)
    if not values.size or not 1 <= values.min() <= values.max() <= x.shape[0]:
        raise ValueError(
            f"lengths of pack_padded_sequence must be from 1 to the {x.shape[0]} steps of the padded array, not "
            f"{values.tolist()}; leave out empty sequences{at_line(user_line())}"
        )
    order = order_of(values)
    if not enforce_sorted:
        return PackedSequence.of_padded(x, values, np.arange(len(values)) if order is None else order)
    if order is not None:
        raise ValueError(
            f"lengths of pack_padded_sequence increase, {values.tolist()}, with enforce_sorted=True; sort the "
            f"sequences by length, the longest first, or pass enforce_sorted=False{at_line(user_line())}"
        )
    return PackedSequence.of_padded(x, values, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """The padded array of packed sequences, the inverse of `pack_padded_sequence`.

    Args:
        sequence: the packed sequences.
        batch_first: whether the batch shall be axis 0.
        padding_value: what the padding holds.
        total_length: number of steps to pad to; by default that of the longest sequence, or where the lengths are
            traced, that of the array that was packed.

    Returns:
        `(padded, lengths)`, an array of shape (T, N, ...) and a vector of N integers, in the order in which the
        sequences were given.

    Raises:
        ValueError: `total_length` is smaller than the number of steps.
        TypeError: `sequence` is not packed.
    """
    _require_packed(sequence, "pad_packed_sequence")
    padded, lengths = sequence.padded(padding_value), sequence.lengths
    if not isinstance(sequence, PaddedSequence) and sequence.unsorted_indices is not None:
        padded, lengths = padded[:, sequence.unsorted_indices], lengths[sequence.unsorted_indices]
    if total_length is not None:
        if total_length < padded.shape[0]:
            raise ValueError(
                f"total_length of pad_packed_sequence must be at least the {padded.shape[0]} steps of the longest "
                f"sequence, not {total_length}{at_line(user_line())}"
            )
        padded = _lengthened(padded, total_length, padding_value)
    return (fnp.swapaxes(padded, 0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Iterable[Any],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: Literal["left", "right"] = "right",
) -> Any:
    """Stack arrays of different lengths, padded to the longest.

    Args:
        sequences: N arrays of shapes (T_i, ...).
        batch_first: whether the batch shall be axis 0.
        padding_value: what the padding holds.
        padding_side: where the padding is.

    Returns:
        An array of shape (T, N, ...), with `batch_first` (N, T, ...).

    Raises:
        ValueError: there are none, they differ in other axes than the first, or `padding_side` is unknown.

    Example:
        >>> import numpy as np
        >>> from ftrans.nn.utils.rnn import pad_sequence
        >>> pad_sequence([np.array([1, 2]), np.array([3])], batch_first=True)
        array([[1, 2],
               [3, 0]])
    """
    found = _listed(sequences, "pad_sequence")
    if padding_side not in ("left", "right"):
        raise ValueError(f"padding_side must be 'left' or 'right', not {padding_side!r}{at_line(user_line())}")
    longest = max([x.shape[0] for x in found])
    padded = [_lengthened(x, longest, padding_value, padding_side) for x in found]
    return fnp.stack(padded, axis=0 if batch_first else 1)


def pack_sequence(sequences: Iterable[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack arrays of different lengths.

    Args:
        sequences: N arrays of shapes (T_i, ...).
        enforce_sorted: as for `pack_padded_sequence`.

    Returns:
        The packed sequences.

    Raises:
        ValueError: there are none, one is empty, or their order is not allowed.
    """
    found = _listed(sequences, "pack_sequence")
    return pack_padded_sequence(pad_sequence(found), [x.shape[0] for x in found], enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences in a padded array, without padding.

    Args:
        padded_sequences: array of shape (T, N, ...), with `batch_first` (N, T, ...).
        lengths: vector of N integers.
        batch_first: whether the batch is axis 0.

    Returns:
        A list of N arrays.

    Raises:
        TypeError: the lengths are traced, so that shapes would depend on them.
    """
    x = _steps_first(padded_sequences, "unpad_sequence", batch_first)
    values = concrete(array(read(lengths)))
    if values is None:
        raise TypeError(
            "unpad_sequence makes arrays whose shapes are the lengths, which are traced here; compute with the padded "
            f"array and a mask, np.arange(T)[:, None] < lengths{at_line(user_line())}"
        )
    return [x[:length, i] for i, length in enumerate(values.tolist())]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The packed sequences as a list of arrays, the inverse of `pack_sequence`.

    Args:
        packed_sequences: the packed sequences.

    Raises:
        TypeError: the lengths are traced, so that shapes would depend on them; or `packed_sequences` is not packed.
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


def invert_permutation(permutation: Any) -> Any:
    """The inverse of a permutation, a vector of integers; None for None.

    Example:
        >>> from ftrans.nn.utils.rnn import invert_permutation
        >>> invert_permutation([2, 0, 1])
        array([1, 2, 0])
    """
    return None if permutation is None else fnp.argsort(array(read(permutation)))


def _steps_first(x: Any, what: str, batch_first: bool) -> Any:
    x = array(read(x))
    if len(shape_of(x)) < 2:
        raise ValueError(
            f"{what} takes an array of shape {'(N, T, ...)' if batch_first else '(T, N, ...)'}, not {described(x)}"
            + at_line(user_line())
        )
    return fnp.swapaxes(x, 0, 1) if batch_first else x


def _listed(sequences: Iterable[Any], what: str) -> list[Any]:
    found = [array(read(x)) for x in sequences]
    shapes = [shape_of(x) for x in found]
    if not found or () in shapes or len({s[1:] for s in shapes}) > 1:
        raise ValueError(
            f"{what} takes arrays of shapes (T_i, ...) that differ in axis 0 only, not "
            f"{', '.join(map(described, found)) or 'an empty list'}{at_line(user_line())}"
        )
    return found


def _lengthened(x: Any, length: int, value: float, side: str = "right") -> Any:
    missing = length - x.shape[0]
    if not missing:
        return x
    padding = np.full((missing, *x.shape[1:]), value, x.dtype)
    return fnp.concatenate([padding, x] if side == "left" else [x, padding])


def _require_packed(x: Any, what: str) -> None:
    if not isinstance(x, PackedSequence):
        raise TypeError(
            f"{what} takes a PackedSequence, as pack_padded_sequence and recurrent layers return it, not {described(x)}"
            + at_line(user_line())
        )
