"""PackedSequence: sequences of different lengths in one array without padding, as recurrent layers take and give them.

Elements are in the order of time steps: first those of step 0 of all sequences, the longest sequence first, then those
of step 1 of the sequences that are longer than 1, and so on.  So the size of the array depends on the lengths.  A
compiled function has one program for all lengths where they are one of its arguments: there a packed sequence holds
the padded array together with the traced lengths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from .. import numpy as fnp
from ..base.cell import read
from ..base.forward_code import ArrayContainer
from ..base.source import at_line, user_line
from .functional.arguments import concrete, described, shape_of
from .modules.pytrees import register_container


class PackedSequence(ArrayContainer):
    """Sequences of different lengths, packed by `nn.utils.rnn.pack_padded_sequence` or `pack_sequence`.

    It is a container of one array for `ft.grad`, `nn.jit` and other transformations; the lengths are part of its
    structure, so a function that is compiled for a packed sequence as an argument is compiled again for other lengths.
    Pass the padded array and its lengths instead, and pack inside, for one program.

    Args:
        data: array of shape (S, ...), the elements of all sequences; S is the sum of the lengths.
        batch_sizes: for each time step the number of sequences that are longer.
        sorted_indices: the order of the sequences by length, the longest first; None if they were given in that order.
        unsorted_indices: the inverse permutation; it follows from `sorted_indices`.

    Attributes:
        data: as given.
        batch_sizes: an array of type i64[T].
        sorted_indices: an array of type i64[N], or None.
        unsorted_indices: an array of type i64[N], or None.

    Raises:
        ValueError: the batch sizes do not decrease, or do not add up to the number of elements.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> packed = nn.utils.rnn.pack_sequence([np.array([1.0, 2.0, 3.0]), np.array([4.0])])
        >>> packed.data, packed.batch_sizes
        (array([1., 4., 2., 3.]), array([2, 1, 1]))
    """

    def __init__(self, data: Any, batch_sizes: Any, sorted_indices: Any = None, unsorted_indices: Any = None) -> None:
        sizes = _static("batch_sizes", batch_sizes)
        if sorted_indices is None and unsorted_indices is not None:
            sorted_indices = np.argsort(_static("unsorted_indices", unsorted_indices))
        elements = shape_of(data)[:1]
        if sizes.size == 0 or sizes[-1] < 1 or np.any(np.diff(sizes) > 0) or elements != (sizes.sum(),):
            raise ValueError(
                f"batch_sizes of PackedSequence must not increase, and add up to the elements of data, but are "
                f"{sizes.tolist()} for {described(data)}{at_line(user_line())}"
            )
        self._set_up(data, sizes, None if sorted_indices is None else _static("sorted_indices", sorted_indices))

    def _set_up(self, data: Any, batch_sizes: np.ndarray[Any, Any], sorted_indices: Any) -> None:
        self.data = data
        self.batch_sizes = batch_sizes
        self.sorted_indices = sorted_indices
        self.unsorted_indices = None if sorted_indices is None else np.argsort(sorted_indices)

    @classmethod
    def of_padded(cls, array: Any, lengths: np.ndarray[Any, Any], order: np.ndarray[Any, Any] | None) -> PackedSequence:
        """The sequences in an array of shape (T, N, ...), which are put in an order of decreasing lengths."""
        if order is not None:
            array, lengths = array[:, order], lengths[order]
        batch_sizes = (lengths > np.arange(lengths[0])[:, None]).sum(1)
        return PackedSequence.of_parts(_inside_of(array, batch_sizes), batch_sizes, order)

    @classmethod
    def of_parts(cls, data: Any, batch_sizes: Any, sorted_indices: Any) -> Self:
        """One whose parts are known to fit."""
        found = cls.__new__(cls)
        found._set_up(data, batch_sizes, sorted_indices)
        return found

    # As a named tuple

    def __iter__(self) -> Any:
        return iter((self.data, self.batch_sizes, self.sorted_indices, self.unsorted_indices))

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(data={self.data!r}, batch_sizes={self.batch_sizes!r}, "
            f"sorted_indices={self.sorted_indices!r}, unsorted_indices={self.unsorted_indices!r})"
        )

    def _replace(self, data: Any) -> PackedSequence:
        """The same with other elements, as that of a named tuple.

        Raises:
            ValueError: there are not as many.
        """
        return PackedSequence(data, self.batch_sizes, self.sorted_indices)

    def astype(self, dtype: Any) -> PackedSequence:
        """The same in another dtype."""
        first, *others = self.arrays()
        return self.with_arrays([first.astype(dtype), *others])

    def to(self, dtype: Any) -> PackedSequence:
        """The same in another dtype.

        Raises:
            TypeError: it is no dtype.
        """
        try:
            return self.astype(np.dtype(dtype))
        except TypeError:
            raise TypeError(
                f"a packed sequence is converted to a dtype, not to {dtype!r}; to move it to a device, move the array "
                f"before it is packed{at_line(user_line())}"
            ) from None

    def float(self) -> PackedSequence:
        """The same in float32."""
        return self.astype(np.float32)

    def double(self) -> PackedSequence:
        """The same in float64."""
        return self.astype(np.float64)

    def half(self) -> PackedSequence:
        """The same in float16."""
        return self.astype(np.float16)

    def arrays(self) -> tuple[Any, ...]:
        return (self.data,)

    def with_arrays(self, arrays: Iterable[Any]) -> PackedSequence:
        (data,) = arrays
        return PackedSequence.of_parts(data, self.batch_sizes, self.sorted_indices)

    # What recurrent layers need

    @property
    def lengths(self) -> Any:
        """The lengths of the sequences, in the order in which they are packed."""
        return (self.batch_sizes[:, None] > np.arange(self.batch_sizes[0])).sum(0)

    def padded(self, padding_value: Any = 0) -> Any:
        """An array of shape (T, N, ...) with the sequences in the order in which they are packed."""
        data = read(self.data)
        steps, count = len(self.batch_sizes), int(self.batch_sizes[0])
        inside = np.arange(count) < self.batch_sizes[:, None]
        if inside.all():
            return data.reshape((steps, count, *data.shape[1:]))
        starts = np.cumsum(self.batch_sizes) - self.batch_sizes
        found = data[np.where(inside, starts[:, None] + np.arange(count), 0)]
        inside = inside.reshape(inside.shape + (1,) * (len(data.shape) - 1))
        return fnp.where(inside, found, np.asarray(padding_value, data.dtype))

    def with_padded(self, padded: Any) -> PackedSequence:
        """Sequences of the same lengths, from an array of shape (T, N, ...)."""
        return PackedSequence.of_parts(_inside_of(padded, self.batch_sizes), self.batch_sizes, self.sorted_indices)

    def in_packed_order(self, x: Any) -> Any:
        """An array of shape (K, N, ...), such as hidden states, with axis 1 in the order of the packed sequences."""
        return x if self.sorted_indices is None else read(x)[:, self.sorted_indices]

    def in_given_order(self, x: Any) -> Any:
        """The same with axis 1 in the order in which the sequences were given."""
        return x if self.unsorted_indices is None else x[:, self.unsorted_indices]


class PaddedSequence(PackedSequence):
    """Sequences whose lengths are traced: a padded array of shape (T, N, ...), and the lengths."""

    def __init__(self, array: Any, lengths: Any) -> None:
        self._array = array
        self._lengths = lengths

    @property
    def lengths(self) -> Any:
        return self._lengths

    def _packed(self) -> PackedSequence:
        """The packed sequence, where the lengths are known: when the function that traced them has returned."""
        lengths = concrete(self._lengths)
        if lengths is None:
            raise TypeError(
                "the elements of a packed sequence are as many as its lengths add up to, which are traced, so its "
                "array has no shape here. Recurrent layers and nn.utils.rnn.pad_packed_sequence take the packed "
                "sequence as it is. Compute with the padded array and a mask instead of packed.data, or make the "
                "lengths a static argument, a tuple with static_argnums, for which the function is compiled anew"
                + at_line(user_line())
            )
        array = read(self._array)
        if not 1 <= lengths.min() <= lengths.max() <= array.shape[0]:
            raise ValueError(
                f"lengths of packed sequences must be from 1 to the {array.shape[0]} steps of the padded array, not "
                f"{lengths.tolist()}{at_line(user_line())}"
            )
        return PackedSequence.of_padded(array, lengths, order_of(lengths))

    @property
    def data(self) -> Any:
        return self._packed().data

    @property
    def batch_sizes(self) -> Any:  # type: ignore[override]
        return self._packed().batch_sizes

    @property
    def sorted_indices(self) -> Any:
        return self._packed().sorted_indices

    @property
    def unsorted_indices(self) -> Any:  # type: ignore[override]
        return self._packed().unsorted_indices

    def arrays(self) -> tuple[Any, ...]:
        return self._array, self._lengths

    def with_arrays(self, arrays: Iterable[Any]) -> PackedSequence:
        return PaddedSequence(*arrays)

    def __repr__(self) -> str:
        return f"PackedSequence(padded={self._array!r}, lengths={self._lengths!r})"

    def padded(self, padding_value: Any = 0) -> Any:
        array = read(self._array)
        inside = np.arange(array.shape[0])[:, None] < self._lengths
        inside = inside.reshape((*inside.shape, *(1,) * (len(array.shape) - 2)))
        return fnp.where(inside, array, np.asarray(padding_value, array.dtype))

    def with_padded(self, padded: Any) -> PackedSequence:
        return PaddedSequence(padded, self._lengths)

    def in_packed_order(self, x: Any) -> Any:
        return x

    def in_given_order(self, x: Any) -> Any:
        return x


def order_of(lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The order of sequences from the longest to the shortest; None if that is their order."""
    return None if np.all(np.diff(lengths) <= 0) else np.argsort(-lengths, kind="stable")


def _inside_of(array: Any, batch_sizes: np.ndarray[Any, Any]) -> Any:
    """The elements that are no padding, of sequences in order, as an array of shape (S, ...)."""
    steps, count = len(batch_sizes), int(batch_sizes[0])
    places = np.flatnonzero(np.arange(count) < batch_sizes[:, None])
    flat = array[:steps].reshape((steps * count, *array.shape[2:]))
    return flat if len(places) == steps * count else flat[places]


def _static(name: str, x: Any) -> np.ndarray[Any, Any]:
    """A vector of integers that is known while tracing."""
    found = concrete(x if hasattr(x, "shape") else np.asarray(x))
    if found is None:
        raise TypeError(
            f"{name} of PackedSequence says how large its array is, so it cannot be traced; pass the padded array and "
            f"its lengths to the transformed function, and pack them inside{at_line(user_line())}"
        )
    return found


def _parts(packed: PackedSequence) -> tuple[tuple[Any, ...], Any]:
    order = packed.sorted_indices
    sizes = tuple(packed.batch_sizes.tolist())
    return packed.arrays(), (sizes, None if order is None else tuple(order.tolist()))


def _put_together(structure: Any, parts: Any) -> PackedSequence:
    sizes, order = structure
    (data,) = parts
    return PackedSequence.of_parts(data, np.array(sizes), None if order is None else np.array(order))


register_container(PackedSequence, _parts, _put_together)
register_container(PaddedSequence, lambda x: (x.arrays(), None), lambda _, parts: PaddedSequence(*parts))
