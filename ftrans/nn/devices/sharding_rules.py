"""Rules by which the cells of a model are divided over the devices of a mesh.

A rule says of some cells how their axes are divided, as a `PartitionSpec` of JAX does: patterns of paths, which users
write, and ready-made rules for the layers of this package.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...api.call import type_name
from ...base.source import at_line, user_line
from ..cells.array_cell import ArrayCell
from ..cells.kinds import Parameter
from ..layers.attention import MultiheadAttention
from ..layers.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..layers.embeddings import Embedding, EmbeddingBag
from ..layers.linear import Bilinear, Linear
from ..layers.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from ..modules.containers import Sequential
from ..modules.graph import Graph
from ..modules.paths import all_paths

# For each axis of an array: the axis of the mesh that divides it, several, or None.
Entries = tuple[Any, ...]


class Rule:
    """Says how the axes of some cells are divided.

    Attributes:
        axis: the axis of the mesh that it uses, if it is one.
        divides_batches: whether batches are divided over that axis.
    """

    axis: str | None = None
    divides_batches = False

    def entries(self, graph: Graph, mesh: Any) -> dict[int, Entries]:
        """The divided axes of cells, by the identity of the cell.

        Raises:
            ValueError: it says nothing of any cell, or something impossible.
        """
        raise NotImplementedError


class Pattern(Rule):
    """Cells whose paths a regular expression matches somewhere, and how their axes are divided."""

    def __init__(self, pattern: str, spec: Any) -> None:
        self.pattern = pattern
        self.spec = as_entries(spec, f"the rule {pattern!r}")
        try:
            self.expression = re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"a rule's pattern is a regular expression, which {pattern!r} is not: {error}{at_line(user_line())}"
            ) from None

    def entries(self, graph: Graph, mesh: Any) -> dict[int, Entries]:
        paths = _paths_of(graph)
        matched = {id(cell): path for path, cell in reversed(paths) if self.expression.search(path)}
        if not matched:
            names = list(dict.fromkeys(path for path, _ in paths))
            close = difflib.get_close_matches(self.pattern, names, 3, 0.3) or names[:3]
            raise ValueError(
                f"the rule {self.pattern!r} matches no path of the model, which has {len(names)}, such as "
                f"{', '.join(close)}; a rule is a regular expression that is looked for in them" + at_line(user_line())
            )
        cells = {id(cell): cell for cell in graph.cells}
        what = f"the rule {self.pattern!r}"
        return {key: divisible(path, cells[key], self.spec, mesh, what) for key, path in matched.items()}


class Fsdp(Rule):
    """Parameters are divided along their largest axis that can be."""

    divides_batches = True

    def __init__(self, axis: str, min_size: int) -> None:
        self.axis: str = axis
        self.min_size = min_size

    def entries(self, graph: Graph, mesh: Any) -> dict[int, Entries]:
        count = size_of_axis(mesh, self.axis, "nn.fsdp")
        found = {}
        for cell in graph.cells:
            if isinstance(cell, Parameter) and cell.size >= self.min_size:
                possible = [i for i, n in enumerate(cell.shape) if n and n % count == 0]
                if possible:
                    longest = max(possible, key=lambda i: cell.shape[i])
                    found[id(cell)] = (*[None] * longest, self.axis)
        if not found:
            raise ValueError(
                f"nn.fsdp found no parameter of {self.min_size} elements or more with an axis that {count} devices "
                f"divide evenly; write nn.data_parallel(), or a smaller min_size{at_line(user_line())}"
            )
        return found

    def __repr__(self) -> str:
        return f"fsdp({self.axis!r}, min_size={self.min_size})"


class DataParallel(Rule):
    """All cells are whole on each device."""

    divides_batches = True

    def __init__(self, axis: str) -> None:
        self.axis: str = axis

    def entries(self, graph: Graph, mesh: Any) -> dict[int, Entries]:
        size_of_axis(mesh, self.axis, "nn.data_parallel")
        return {}

    def __repr__(self) -> str:
        return f"data_parallel({self.axis!r})"


class TensorParallel(Rule):
    """Weights are divided so that each device computes some of the features of a layer."""

    def __init__(self, axis: str) -> None:
        self.axis: str = axis

    def entries(self, graph: Graph, mesh: Any) -> dict[int, Entries]:
        count = size_of_axis(mesh, self.axis, "nn.tensor_parallel")
        reducing = _reducing(graph)
        found: dict[int, Entries] = {}
        for module in graph.modules.values():
            for name, entries in self._of_layer(module, id(module) in reducing):
                cell = vars(module).get(name)
                if isinstance(cell, ArrayCell) and all(
                    [entry is None or n % count == 0 for entry, n in zip(entries, cell.shape, strict=False)]
                ):
                    found.setdefault(id(cell), entries)
        if not found:
            raise ValueError(
                "nn.tensor_parallel found no Linear, Embedding, attention, convolution or recurrent layer whose "
                f"features {count} devices divide evenly; write rules of your own, [(pattern, PartitionSpec), ...]"
                + at_line(user_line())
            )
        return found

    def _of_layer(self, module: Any, reduces: bool) -> Iterator[tuple[str, Entries]]:
        """Names of the cells of a layer, and how they are divided.

        Args:
            module: the layer.
            reduces: whether its input is divided already, so that the devices add up what they compute of it.
        """
        rows: Entries = (self.axis,)
        columns: Entries = (None, self.axis)
        if isinstance(module, Linear) and reduces:
            yield "weight", columns
        elif isinstance(module, Linear | Bilinear | Conv1d | Conv2d | Conv3d):
            yield from (("weight", rows), ("bias", rows))
        elif isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d):
            yield "weight", columns
            if module.groups == 1:
                yield "bias", rows
        elif isinstance(module, Embedding | EmbeddingBag):
            yield "weight", columns
        elif isinstance(module, MultiheadAttention):
            for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias"):
                yield name, rows
        elif isinstance(module, RNN | LSTM | GRU | RNNCell | LSTMCell | GRUCell):
            for name in vars(module):
                if name.startswith(("weight_", "bias_")):
                    yield name, rows

    def __repr__(self) -> str:
        return f"tensor_parallel({self.axis!r})"


def _reducing(graph: Graph) -> set[int]:
    """The linear layers whose input is what a divided layer has computed: the second of each pair."""
    found = set()
    for module in graph.modules.values():
        if isinstance(module, MultiheadAttention):
            found.add(id(module.out_proj))
        elif isinstance(getattr(module, "linear1", None), Linear) and isinstance(
            getattr(module, "linear2", None), Linear
        ):
            found.add(id(module.linear2))
        elif isinstance(module, Sequential):
            found.update(map(id, [m for m in module if isinstance(m, Linear)][1::2]))
    return found


def as_rules(rules: Any) -> list[Rule]:
    """What a user gives as rules, as a list of them."""
    if rules is None:
        return []
    if isinstance(rules, Rule):
        return [rules]
    if isinstance(rules, Mapping):
        return [Pattern(*pair) for pair in rules.items()]
    if isinstance(rules, str) or not isinstance(rules, Iterable):
        raise _not_rules(rules)
    found = []
    for rule in rules:
        if isinstance(rule, Rule):
            found.append(rule)
        elif isinstance(rule, tuple | list) and len(rule) == 2 and isinstance(rule[0], str):
            found.append(Pattern(*rule))
        else:
            raise _not_rules(rule)
    return found


def _not_rules(given: Any) -> TypeError:
    return TypeError(
        "rules are pairs of a pattern and a PartitionSpec, [('weight$', P('data')), ...], or nn.fsdp(), "
        f"nn.data_parallel(), nn.tensor_parallel(), but given was {type_name(given)}{at_line(user_line())}"
    )


def as_entries(spec: Any, what: str) -> Entries:
    """The entries of a specification: for each axis, the axes of the mesh that divide it."""
    if spec is None:
        return ()
    if isinstance(spec, str):
        return (spec,)
    entries = tuple(spec) if isinstance(spec, Iterable) else None
    if entries is None or not all([x is None or isinstance(x, str | tuple | list) for x in entries]):
        raise TypeError(
            f"{what} has {spec!r} where a PartitionSpec is expected: for each axis of the array the name of an axis of "
            f"the mesh, several, or None, as in PartitionSpec('data', None){at_line(user_line())}"
        )
    return entries


def size_of_axis(mesh: Any, axis: Any, what: str) -> int:
    """The size of an axis of the mesh.

    Raises:
        ValueError: it has none of this name.
    """
    if axis not in mesh.shape:
        known = ", ".join(f"{name!r} of size {size}" for name, size in mesh.shape.items())
        raise ValueError(f"{what} names the axis {axis!r}, but the mesh has {known}{at_line(user_line())}")
    return int(mesh.shape[axis])


def size_of_axes(mesh: Any, entry: Any, what: str) -> int:
    """The number of parts that an entry of a specification makes: by an axis of the mesh, several, or None."""
    names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
    return math.prod([size_of_axis(mesh, name, what) for name in names])


def divisible(path: str, x: Any, entries: Entries, mesh: Any, what: str) -> Entries:
    """The entries of a specification, if they fit an array.

    Raises:
        ValueError: they name an axis that the mesh does not have, or axes of the array that it does not have, or that
            cannot be divided evenly.
    """
    named = [() if entry is None else (entry,) if isinstance(entry, str) else tuple(entry) for entry in entries]
    counts = [size_of_axes(mesh, names, what) for names in named]
    if len(entries) > len(x.shape):
        raise ValueError(
            f"{what} divides {len(entries)} axes, but {path} is {x.dtype}{list(x.shape)}{at_line(user_line())}"
        )
    for axis, (names, count, size) in enumerate(zip(named, counts, x.shape, strict=False)):
        if size % count:
            by = " x ".join(f"{name!r} ({mesh.shape[name]})" for name in names)
            raise ValueError(
                f"{path} is {x.dtype}{list(x.shape)}, whose axis {axis} of size {size} cannot be divided evenly by "
                f"the axis {by} of the mesh; {what} says so. Write a specification that leaves it whole, or choose "
                f"sizes that are multiples of {count}{at_line(user_line())}"
            )
    return entries


def _paths_of(graph: Graph) -> list[tuple[str, ArrayCell]]:
    """All paths to the cells of a graph; a tied cell has several."""
    return [found for prefix, root in graph.roots for found in all_paths(root, prefix)]
