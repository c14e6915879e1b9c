"""Signature: the arguments or results of a stored function, as JSON, with which its calls are checked.

A container is written as JSON like this, where an integer is the place of an array in a flat list:

    {"tuple": [0, {"list": [1, 2]}, {"dict": [["a", 3], ["b", null]]}, {"namedtuple": ["Point", [["x", 4]]]}]}
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.type_questions import is_plain

_NUMBERS = (bool, int, float, complex)


class BadCall(Exception):
    """Arguments do not fit; the message says how."""


class Leaf(NamedTuple):
    """An array of a signature.

    Attributes:
        path: how to get to it.
        shape: its sizes; "batch" is the one that is the same for all arguments with a batch axis.
        dtype: its dtype.
    """

    path: str
    shape: tuple[int | str, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def takes(self, x: Any) -> Any:
        """`x` as an array of this type.

        Raises:
            BadCall: it is none.
        """
        if type(x) in _NUMBERS:
            # A number of Python has no dtype of its own: it takes that of the argument, if it is of the same kind.
            fitting = np.result_type(type(x)(0), self.dtype) if self.dtype.kind != "b" else np.dtype(bool)
            if fitting == self.dtype and (self.dtype.kind != "b" or type(x) is bool):
                try:
                    x = np.asarray(x, self.dtype)
                except OverflowError:
                    raise BadCall(f"argument {self.path} is {x}, which is not in the range of {self}") from None
        if not (hasattr(x, "dtype") and hasattr(x, "shape")):
            raise BadCall(f"argument {self.path} is {type(x).__name__} and not an array of type {self}")
        if is_plain(x, np.ndarray | np.generic) and not x.dtype.isnative:
            x = x.astype(x.dtype.newbyteorder("="))
        if x.dtype != self.dtype:
            raise BadCall(f"argument {self.path} is of dtype {x.dtype}, but {self} is expected; use .astype")
        fits = len(x.shape) == len(self.shape) and all(
            size in ("batch", given) for size, given in zip(self.shape, x.shape, strict=True)
        )
        if not fits:
            raise BadCall(f"argument {self.path} has the shape {tuple(x.shape)}, but {self} is expected")
        return x


class Signature(NamedTuple):
    """Containers of arrays.

    Attributes:
        structure: the containers as JSON.
        leaves: the arrays in them.
    """

    structure: Any
    leaves: tuple[Leaf, ...]

    @classmethod
    def from_json(cls, value: Any) -> Signature:
        """Read what `to_json` has written.

        Raises:
            Exception: it is something else.
        """
        leaves = [
            Leaf(str(leaf["path"]), tuple(n if n == "batch" else int(n) for n in leaf["shape"]), _dtype(leaf["dtype"]))
            for leaf in value["leaves"]
        ]
        signature = cls(value["structure"], tuple(leaves))
        containers = signature.containers(range(len(leaves)))
        if describe(containers, "it") != signature.structure or sorted(tree.flatten(containers)[0]) != [
            *range(len(leaves))
        ]:
            raise BadCall("containers and arrays do not fit")
        return signature

    def to_json(self) -> Any:
        """As JSON."""
        leaves = [{"path": x.path, "shape": list(x.shape), "dtype": x.dtype.name} for x in self.leaves]
        return {"structure": self.structure, "leaves": leaves}

    def arrays(self, containers: Any) -> list[Any]:
        """The arrays in containers of this structure, in order.

        Raises:
            BadCall: they are of another structure, or an array is of another type.
        """
        found: list[Any] = [None] * len(self.leaves)
        _take_apart(self.structure, containers, "", found)
        arrays = [leaf.takes(x) for leaf, x in zip(self.leaves, found, strict=True)]
        self._check_batch(arrays)
        return arrays

    def _check_batch(self, arrays: Sequence[Any]) -> None:
        sizes = {
            leaf.path: x.shape[0] for leaf, x in zip(self.leaves, arrays, strict=True) if leaf.shape[:1] == ("batch",)
        }
        if len(set(sizes.values())) > 1:
            raise BadCall(
                "the arguments have batches of different sizes: "
                + ", ".join(f"{size} at {path}" for path, size in sizes.items())
            )
        if 0 in sizes.values():
            raise BadCall("the batch is empty; it needs at least one row")

    def containers(self, arrays: Sequence[Any]) -> Any:
        """The containers that hold these arrays."""
        return _put_together(self.structure, arrays)

    def __str__(self) -> str:
        return str(_put_together(self.structure, [_Text(leaf) for leaf in self.leaves]))


class _Text:
    """Prints as a type."""

    def __init__(self, leaf: Leaf) -> None:
        self._text = str(leaf)

    def __repr__(self) -> str:
        return self._text


def describe(containers: Any, path: str) -> Any:
    """The JSON of containers whose leaves are integers.

    Args:
        containers: the containers.
        path: what they are called in messages.

    Raises:
        BadCall: there is a container that Python alone does not have.
    """
    kind = type(containers)
    if containers is None or kind is int:
        return containers
    if kind in (list, tuple):
        return {kind.__name__: [describe(x, f"{path}[{i}]") for i, x in enumerate(containers)]}
    if isinstance(containers, dict):
        if kind is not dict:
            raise BadCall(f"{path} is a container of class {kind.__name__}")
        if not all(type(key) in (str, int) for key in containers):
            raise BadCall(f"{path} is a dict with keys other than strings and integers")
        return {"dict": [[key, describe(x, f"{path}[{key!r}]")] for key, x in containers.items()]}
    if isinstance(containers, tuple) and hasattr(containers, "_fields"):
        fields = [[name, describe(getattr(containers, name), f"{path}.{name}")] for name in containers._fields]
        return {"namedtuple": [kind.__name__, fields]}
    raise BadCall(f"{path} is a container of class {kind.__name__}")


def _take_apart(structure: Any, given: Any, path: str, found: list[Any]) -> None:
    if type(structure) is int:
        found[structure] = given
        return
    if structure is None:
        if given is not None:
            raise BadCall(f"argument {path} is {type(given).__name__}, but None is expected")
        return
    ((kind, content),) = structure.items()
    if kind == "dict":
        keys = [key for key, _ in content]
        if not isinstance(given, dict) or set(given) != set(keys):
            raise BadCall(f"{_named(path)} is {_described(given)}, but a dict with the keys {keys} is expected")
        for key, part in content:
            _take_apart(part, given[key], f"{path}[{key!r}]", found)
        return
    is_named = kind == "namedtuple"
    parts = [part for _, part in content[1]] if is_named else content
    expected = tuple if is_named else {"tuple": tuple, "list": list}[kind]
    if not isinstance(given, expected) or len(given) != len(parts):
        what = f"{kind} {content[0]}" if is_named else kind
        raise BadCall(f"{_named(path)} is {_described(given)}, but a {what} of {len(parts)} is expected")
    for i, (part, x) in enumerate(zip(parts, given, strict=True)):
        _take_apart(part, x, f"{path}[{i}]", found)


def _put_together(structure: Any, arrays: Sequence[Any]) -> Any:
    if type(structure) is int:
        return arrays[structure]
    if structure is None:
        return None
    ((kind, content),) = structure.items()
    if kind == "dict":
        return {key: _put_together(part, arrays) for key, part in content}
    if kind == "namedtuple":
        name, fields = content
        values = [_put_together(part, arrays) for _, part in fields]
        return namedtuple(name, [field for field, _ in fields])(*values)
    values = [_put_together(part, arrays) for part in content]
    return tuple(values) if kind == "tuple" else values


def _named(path: str) -> str:
    return f"argument {path}" if path else "what is given"


def _described(given: Any) -> str:
    kind = type(given).__name__
    if isinstance(given, dict):
        return f"a dict with the keys {list(given)}"
    return f"a {kind} of {len(given)}" if isinstance(given, list | tuple) else f"of type {kind}"


def _dtype(name: Any) -> np.dtype[Any]:
    """The dtype of a name; those that NumPy does not have are of the package that JAX has them from."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
