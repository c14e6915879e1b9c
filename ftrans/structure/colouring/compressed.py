"""Compressed evaluation: the entries of a sparse matrix of derivatives from a few products with sums of unit vectors.

A colouring says which columns one product `J @ v` can serve, or which rows one product `v @ J`; all of them are one
batch.  Each entry is then found at a place of the products that is known beforehand, or, for an acyclic colouring, by
substitution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ...base.index_map import IndexMap
from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType, is_complex
from ...ops.broadcast import broadcast
from ...ops.elementwise import convert, eq, mul
from ...ops.literals import full, iota
from ...ops.parts import concatenate
from ...ops.shapes import reshape
from ...transforms.differentiate import gradient, linearize
from ...transforms.simplify import simplify
from ..dense.singular import has_singular_slopes
from ..entries import Entries, NotStructured
from ..graph.emission import constant, summed_at, take
from .colour import acyclic_colours, bidirectional_colours, column_colours, fewest_colours, star_colours
from .jacobian_products import Flags, Products
from .orders import Order
from .recovery import Forest, forest_of, in_rows

JacobianMethod = Literal["forward", "reverse", "bidirectional"]
HessianMethod = Literal["star", "acyclic"]

# Orders of the greedy colouring that are compared, unless the first needs hardly more colours than any must.
_ORDERS: tuple[Order, ...] = ("natural", "smallest_last")
_GOOD = 1.1
_COLOUR = np.dtype(np.int32)


class Colouring(NamedTuple):
    """Which products show all entries.

    Attributes:
        rows: a colour for each row, -1 where there is none.
        columns: a colour for each column.
        order: the order that gave them.
    """

    rows: Any
    columns: Any
    order: str

    @property
    def total(self) -> int:
        """How many products there are."""
        return _count(self.rows) + _count(self.columns)


def jacobian_by_colours(
    program: Program,
    active: Sequence[bool],
    wanted: int,
    pattern: Any,
    method: JacobianMethod = "forward",
    chunk_size: int | None = None,
    colouring: Colouring | None = None,
) -> Entries:
    """The entries of the Jacobian of the first `wanted` outputs with respect to the active inputs.

    Args:
        program: the program.
        active: for each input, whether to differentiate with respect to it.
        wanted: the number of outputs that are differentiated.
        pattern: a sparse array with an entry wherever the Jacobian may differ from zero.
        method: "forward" colours columns, "reverse" rows, "bidirectional" both.
        chunk_size: how many products to compute at once; all by default.
        colouring: what `jacobian_colouring` finds, if it is known.

    Raises:
        NotStructured: products in this direction hold only half of the derivative of a complex function.
    """
    active = tuple(active)
    is_wanted = tuple(i < wanted for i in range(len(program.outputs)))
    check_complex(program, active, is_wanted, method)
    blocks = _apart(program, active, wanted, method)
    if len(blocks) > 1:
        return _by_blocks(program, blocks, pattern, method, chunk_size)
    rows, cols = _positions(pattern)
    width, height = pattern.shape[1], pattern.shape[0]
    of_rows, of_columns, name = colouring or jacobian_colouring(pattern, method)
    is_forward = in_rows(rows, cols, of_columns)
    is_reverse = ~is_forward & in_rows(cols, rows, of_rows)
    _check_recovery(is_forward | is_reverse)
    forward_count, reverse_count = _count(of_columns), _count(of_rows)
    places = np.where(
        is_forward, of_columns[cols] * height + rows, forward_count * height + of_rows[rows] * width + cols
    )
    in_order = np.argsort(places, kind="stable")
    builder = Builder(program.in_types)
    with building(builder):
        products = Products(program, active, is_wanted, builder.inputs())
        found = []
        if forward_count:
            found.append(products.forward(_seeds(of_columns, forward_count, products.ins), chunk_size))
        if reverse_count:
            found.append(products.reverse(_seeds(of_rows, reverse_count, products.outs), chunk_size))
        vector = _taken(found, places[in_order], products.dtype)
        made = simplify(builder.finish([*products.values, vector], f"sparse_jacobian({program.name})"))
    kind = {"forward": "columns", "reverse": "rows"}.get(method, "rows and columns")
    how = _how(f"{method} products", f"{forward_count + reverse_count} of {kind}, {name}", found)
    return Entries(made, rows[in_order], cols[in_order], (height, width), how)


class _Block(NamedTuple):
    """Some outputs and some active inputs, whose part of the Jacobian is found by itself.

    Attributes:
        outputs: positions of the outputs.
        active: which inputs.
        rows: the rows of the whole Jacobian.
        cols: the columns.
    """

    outputs: list[int]
    active: Flags
    rows: slice
    cols: slice


def _apart(program: Program, active: Flags, wanted: int, method: JacobianMethod) -> list[_Block]:
    """The blocks that are to be found apart from each other.

    The infinite slope of one argument makes NaN of the zeros that the tangents of another one have there, and that of
    one result of the zeros of cotangents.
    """
    outputs, inputs = [*range(wanted)], [i for i, a in enumerate(active) if a]
    are_several = len(inputs) > 1 if method == "forward" else len(outputs) > 1 or method != "reverse"
    are_apart = are_several and has_singular_slopes(linearize(program, active).linear)
    by_output = [[j] for j in outputs] if are_apart and method != "forward" else [outputs]
    by_input = [[i] for i in inputs] if are_apart and method != "reverse" else [inputs]
    blocks, top = [], 0
    for rows in by_output:
        height, left = sum(program.out_types[j].size for j in rows), 0
        for cols in by_input:
            width = sum(program.in_types[i].size for i in cols)
            flags = tuple(i in cols for i in range(len(active)))
            blocks.append(_Block(rows, flags, slice(top, top + height), slice(left, left + width)))
            left += width
        top += height
    return blocks


def _by_blocks(
    program: Program, blocks: Sequence[_Block], pattern: Any, method: JacobianMethod, chunk_size: int | None
) -> Entries:
    """The entries of a Jacobian as those of its blocks, one after the other."""
    found = []
    for block in blocks:
        part = Program(program.name, program.inputs, program.eqns, [program.outputs[j] for j in block.outputs])
        inside = pattern[block.rows][:, block.cols].tocsr()
        found.append(jacobian_by_colours(part, block.active, len(block.outputs), inside, method, chunk_size))
    builder = Builder(program.in_types)
    with building(builder):
        inputs = builder.inputs()
        vectors = [inline(entries.program, inputs)[-1] for entries in found]
        dtype = np.result_type(*(x.dtype for x in vectors))
        vector = concatenate(*(convert(x, dtype=dtype) for x in vectors), axis=0)
        made = simplify(builder.finish([*inline(program, inputs), vector], f"sparse_jacobian({program.name})"))
    rows = np.concatenate([entries.rows + block.rows.start for entries, block in zip(found, blocks, strict=True)])
    cols = np.concatenate([entries.cols + block.cols.start for entries, block in zip(found, blocks, strict=True)])
    kind = {"forward": "argument", "reverse": "result"}.get(method, "pair of a result and an argument")
    how = (
        f"engine: colouring, {method} products for each {kind} by itself, as a slope may be infinite",
        *(line for entries in found for line in entries.how if line.startswith("colours")),
    )
    return Entries(made, rows, cols, pattern.shape, how)


def hessian_by_colours(
    program: Program,
    active: Sequence[bool],
    pattern: Any,
    method: HessianMethod = "star",
    chunk_size: int | None = None,
    lower: bool = False,
    colouring: Colouring | None = None,
) -> Entries:
    """The entries of the Hessian of the first output, a scalar, with respect to the active inputs.

    Args:
        program: the program.
        active: for each input, whether to differentiate with respect to it.
        pattern: a sparse array with an entry, on one or both sides of the diagonal, wherever the Hessian may differ
            from zero.
        method: "star" reads each entry from one product; "acyclic" needs fewer products, and finds entries by
            substitution, so that an entry may be wrong by the rounding errors of larger ones in its tree.
        chunk_size: how many products to compute at once; all by default.
        lower: whether to return the entries on and below the diagonal only.
        colouring: what `hessian_colouring` finds, if it is known.

    Raises:
        NotStructured: the function is real and its arguments are complex.
    """
    active = tuple(active)
    check_complex_hessian(program, active)
    pattern = symmetric(pattern)
    inner = gradient(program, active, with_value=True)
    is_wanted = tuple(i >= len(program.outputs) for i in range(len(inner.outputs)))
    _, colours, name = colouring or hessian_colouring(pattern, method)
    rows, cols = _positions(pattern)
    builder = Builder(program.in_types)
    with building(builder):
        products = Products(inner, active, is_wanted, builder.inputs())
        count = _count(colours)
        found = [products.forward(_seeds(colours, count, products.ins), chunk_size)] if count else []
        recover = _by_star if method == "star" else _by_substitution
        rows, cols, vector = recover(found, rows, cols, colours, products.dtype)
        if not lower:
            is_below = rows > cols
            vector = take(vector, _lanes(np.append(np.arange(rows.size), np.flatnonzero(is_below)), rows.size))
            rows, cols = np.append(rows, cols[is_below]), np.append(cols, rows[is_below])
        values = products.values[: len(program.outputs)]
        made = simplify(builder.finish([*values, vector], f"sparse_hessian({program.name})"))
    how = _how(f"Hessian products, {method} colouring", f"{count} of columns, {name}", found)
    return Entries(made, rows, cols, pattern.shape, how)


def jacobian_colouring(pattern: Any, method: JacobianMethod) -> Colouring:
    """The colouring with fewest colours among those of some orders."""
    none_of_rows, none_of_columns = (np.full(n, -1, np.int64) for n in pattern.shape)
    of_columns, of_rows = fewest_colours(pattern)
    if method == "forward":
        return _fewest(lambda order: Colouring(none_of_rows, column_colours(pattern, order), order), of_columns)
    if method == "reverse":
        turned = pattern.T.tocsr()
        return _fewest(lambda order: Colouring(column_colours(turned, order), none_of_columns, order), of_rows)
    return _fewest(lambda order: Colouring(*bidirectional_colours(pattern, order), order), 0)


def hessian_colouring(pattern: Any, method: HessianMethod) -> Colouring:
    """The same for a pattern that is symmetric; only columns have colours."""
    none = np.full(pattern.shape[0], -1, np.int64)
    colours = star_colours if method == "star" else acyclic_colours
    return _fewest(lambda order: Colouring(none, colours(pattern, order), order), 0)


def _fewest(colour: Callable[[Order], Colouring], least: int) -> Colouring:
    """The colouring with fewest colours, of which there must be `least`."""
    best = colour(_ORDERS[0])
    for order in _ORDERS[1:]:
        if best.total > _GOOD * least:
            best = min(best, colour(order), key=lambda found: found.total)
    return best


def _seeds(colours: Any, count: int, types: Sequence[ArrayType]) -> list[Tracer]:
    """For each type, the sums of unit vectors, one for each colour: (count, *shape)."""
    seeds = []
    start = 0
    for t in types:
        mine = colours[start : start + t.size].astype(_COLOUR).reshape(t.shape)
        start += t.size
        shape = (count, *t.shape)
        if count == 1 and not mine.any():
            seeds.append(full(shape, 1, t.dtype))
            continue
        repeated = broadcast(constant(mine), shape=shape, dims=tuple(range(1, len(shape))))
        seeds.append(convert(eq(repeated, iota(shape=shape, axis=0, dtype=_COLOUR)), dtype=t.dtype))
    return seeds


def _taken(found: list[Tracer], places: Any, dtype: Any) -> Tracer:
    """The elements at these places of the products, one after the other."""
    if not places.size:
        return full((0,), 0, dtype)
    flat = [reshape(x, shape=(x.size,)) for x in found]
    joined = flat[0] if len(flat) == 1 else concatenate(*flat, axis=0)
    taken: Tracer = take(joined, _lanes(places, joined.size))
    return taken


def _lanes(places: Any, size: int) -> IndexMap:
    return IndexMap.of(places, size)


def _by_star(found: list[Tracer], rows: Any, cols: Any, colours: Any, dtype: Any) -> tuple[Any, Any, Tracer]:
    """The entries on and below the diagonal, each from the row of the leaf of its star."""
    size = len(colours)
    is_alone = in_rows(rows, cols, colours)
    # The pattern is symmetric: the entry on the other side of the diagonal is the same one in the order of columns.
    is_mirror_alone = is_alone[np.lexsort((rows, cols))]
    _check_recovery(is_alone | is_mirror_alone)
    is_lower = rows >= cols
    rows, cols, is_alone = rows[is_lower], cols[is_lower], is_alone[is_lower]
    places = np.where(is_alone, colours[cols] * size + rows, colours[rows] * size + cols)
    in_order = np.argsort(places, kind="stable")
    return rows[in_order], cols[in_order], _taken(found, places[in_order], dtype)


def _by_substitution(found: list[Tracer], rows: Any, cols: Any, colours: Any, dtype: Any) -> tuple[Any, Any, Tracer]:
    """The entries on and below the diagonal, by substitution in the trees of their colours."""
    size = len(colours)
    is_below, is_diagonal = rows > cols, rows == cols
    ends, diagonal = (rows[is_below], cols[is_below]), rows[is_diagonal]
    forest = forest_of(*ends, colours)
    _check_recovery(forest is not None)
    assert forest is not None
    parts = []
    if diagonal.size:
        parts.append(_taken(found, colours[diagonal] * size + diagonal, dtype))
    if ends[0].size:
        parts.append(_substituted(found, forest, size, dtype))
    vector = full((0,), 0, dtype) if not parts else parts[0] if len(parts) == 1 else concatenate(*parts, axis=0)
    return np.append(diagonal, ends[0]), np.append(diagonal, ends[1]), vector


def _substituted(found: list[Tracer], forest: Forest, size: int, dtype: Any) -> Tracer:
    """The entries of all edges: sums over what is below, by jumps of 1, 2, 4, ... levels."""
    count = len(forest.vertices)
    sums = _taken(found, forest.colours * size + forest.vertices, dtype)
    if forest.depth > 1:
        signs = constant(forest.signs.astype(dtype))
        sums = mul(sums, signs)
        places = np.arange(count)
        # Nothing needs the sums at roots.
        is_root = forest.parents == places
        above = np.where(is_root | is_root[forest.parents], -1, forest.parents)
        while (above >= 0).any():
            jumping = np.flatnonzero(above >= 0)
            sums = summed_at(sums, take(sums, _lanes(jumping, count)), _lanes(above[jumping], count))
            above[jumping] = above[above[jumping]]
        sums = mul(sums, signs)
    taken: Tracer = take(sums, _lanes(forest.place_of, count))
    return taken


def _count(colours: Any) -> int:
    return int(colours.max(initial=-1)) + 1


def _positions(pattern: Any) -> tuple[Any, Any]:
    """The rows and columns of the entries, in row-major order."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return rows, pattern.indices.astype(np.int64)


def symmetric(pattern: Any) -> Any:
    """A pattern together with its mirror image."""
    one = pattern.astype(np.int8)
    both = (one + one.T).tocsr()
    both.sort_indices()
    return both


def check_complex(program: Program, active: Flags, is_wanted: Flags, method: JacobianMethod) -> None:
    """Refuse products that hold half of the derivative, unless all numbers are complex: the caller says holomorphic.

    Raises:
        NotStructured: they do.
    """
    ins = [is_complex(t.dtype) for t, a in zip(program.in_types, active, strict=True) if a]
    outs = [is_complex(t.dtype) for t, w in zip(program.out_types, is_wanted, strict=True) if w]
    if all(ins) and all(outs):
        return
    if any(ins) and method != "reverse":
        raise NotStructured(f"{method} products with complex arguments hold half of the derivative of a real function")
    if any(outs) and method != "forward":
        raise NotStructured(f"{method} products with complex results hold half of the derivative by a real argument")


def check_complex_hessian(program: Program, active: Sequence[bool]) -> None:
    """The same for a Hessian."""
    kinds = {is_complex(t.dtype) for t, a in zip(program.in_types, active, strict=True) if a}
    if kinds | {is_complex(program.out_types[0].dtype)} == {False, True}:
        raise NotStructured("products hold half of the second derivatives of a real function by complex arguments")


def _check_recovery(is_found: Any) -> None:
    if not np.all(is_found):
        raise AssertionError("a colouring does not determine all entries: a defect of ftrans")


def _how(engine: str, colours: str, found: Sequence[Tracer]) -> tuple[str, ...]:
    return (
        f"engine: colouring, {engine}",
        f"colours: {colours}",
        f"bytes of the products: {sum(x.size * x.dtype.itemsize for x in found)}",
    )
