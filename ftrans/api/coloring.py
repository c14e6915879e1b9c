"""coloring(): which columns or rows of a sparse matrix of derivatives one product can serve."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from ..base.source import at_line, user_line
from ..structure.colouring import colour
from ..structure.colouring.orders import ORDERS, Order
from ..structure.colouring.recovery import forest_of, in_rows
from .sparsity import Sparsity, as_sparsity

Kind = Literal["column", "row", "bidirectional", "star", "acyclic"]
_KINDS: tuple[str, ...] = get_args(Kind)


class Coloring:
    """Colours for the columns or rows of a sparse matrix: what has one colour is served by one product.

    `coloring` makes them.

    Args:
        sparsity: the pattern.
        kind: as for `coloring`.
        rows: a colour for each row, an integer from 0, or -1 for none; None if rows are not coloured.
        columns: the same for each column.

    Attributes:
        sparsity: the pattern.
        kind: "column", "row", "bidirectional", "star" or "acyclic".
        rows: a colour for each row, an array of int64; None if rows are not coloured.  -1 stands for a row that needs
            no product.
        columns: the same for each column.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> found = ft.coloring(ft.Sparsity.from_dense(np.tri(4) - np.tri(4, k=-2)))
        >>> found
        Coloring(kind='column', colors=2, shape=(4, 4))
        >>> found.columns
        array([1, 0, 1, 0])
    """

    def __init__(self, sparsity: Sparsity, kind: Kind, rows: Any, columns: Any) -> None:
        self.sparsity = sparsity
        self.kind = kind
        self.rows: Any = None if rows is None else np.asarray(rows, np.int64)
        self.columns: Any = None if columns is None else np.asarray(columns, np.int64)

    @property
    def count(self) -> int:
        """The number of colours: of columns, of rows, or of both together."""
        return sum(int(colours.max(initial=-1)) + 1 for colours in (self.rows, self.columns) if colours is not None)

    def __repr__(self) -> str:
        return f"Coloring(kind={self.kind!r}, colors={self.count}, shape={self.sparsity.shape})"

    def check(self) -> None:
        """Check that each entry can be found from products with the sums of equally coloured unit vectors.

        That is the definition of each kind: of one entry per row and colour for columns, and of stars and trees, which
        two colours form, for symmetric patterns.

        Raises:
            ValueError: one cannot; its position is named.
        """
        i, j = self.sparsity.rows, self.sparsity.cols
        none = np.zeros(i.size, np.bool_)
        from_columns = none if self.columns is None else in_rows(i, j, self.columns)
        from_rows = none if self.rows is None else in_rows(j, i, self.rows)
        if self.kind == "star":
            # An entry may be read on the other side of the diagonal.
            is_found = from_columns | in_rows(j, i, self.columns)
        elif self.kind == "acyclic":
            is_found = self._is_in_tree()
        else:
            is_found = from_columns | from_rows
        if self.kind in ("star", "acyclic"):
            is_found &= (i == j) | (self.columns[i] != self.columns[j])
        if not is_found.all():
            place = int(np.argmin(is_found))
            raise ValueError(
                f"no product shows the entry ({i[place]}, {j[place]}): this is no {self.kind} colouring"
                + at_line(user_line())
            )

    def _is_in_tree(self) -> Any:
        """Whether entries can be substituted: all of them, or none of those of two colours that form a cycle."""
        i, j, colours = self.sparsity.rows, self.sparsity.cols, self.columns
        is_found = (colours[i] >= 0) & (colours[j] >= 0)
        is_below = is_found & (i > j)
        if forest_of(i[is_below], j[is_below], colours) is not None:
            return is_found
        low, high = np.minimum(colours[i], colours[j]), np.maximum(colours[i], colours[j])
        pairs = low * self.count + high
        for pair in np.unique(pairs[is_below]):
            among = is_below & (pairs == pair)
            if forest_of(i[among], j[among], colours) is None:
                is_found = is_found & (pairs != pair)
        return is_found


def coloring(sparsity: Any, kind: Kind = "column", order: Order = "smallest_last", seed: int | None = None) -> Coloring:
    """Colour the columns or rows of a sparse matrix, so that one product per colour determines all entries.

    The colouring is greedy: each column or row in turn takes the first free colour.

    Args:
        sparsity: the pattern: a `Sparsity`, a sparse matrix of SciPy or an array with two axes.
        kind: "column": no row has entries in two columns of one colour, for products `J @ v`; "row": the same for rows
            and products `v @ J`; "bidirectional": both kinds of products, for a matrix with some full rows and some
            full columns; "star" and "acyclic": for a symmetric matrix and products `H @ v`, where each entry is read
            from one product, or found by substitution from fewer of them.
        order: the order in which columns or rows take colours: "natural", "largest_first", "smallest_last",
            "incidence_degree", "dynamic_largest_first" or "random".
        seed: an integer for the order "random".

    Returns:
        A `Coloring`: `columns` and `rows` are the colours, and `count` is the number of colours.

    Raises:
        ValueError: the kind or order is unknown, or the pattern is not symmetric where it must be.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> arrow = np.eye(6)
        >>> arrow[0] = arrow[:, 0] = 1
        >>> [ft.coloring(arrow, kind).count for kind in ("column", "bidirectional", "star")]
        [6, 3, 2]

    Gebremedhin, Manne, Pothen, "What color is your Jacobian?", SIAM Review 47 (2005), has the definitions.
    """
    pattern = as_sparsity(sparsity, "coloring")
    for name, given, known in (("kind", kind, _KINDS), ("order", order, ORDERS)):
        if not isinstance(given, str) or given not in known:
            listed = ", ".join(f'"{x}"' for x in known)
            raise ValueError(f"{name} must be one of {listed}, not {given!r}{at_line(user_line())}")
    matrix = pattern.to_scipy("csr")
    if kind == "column":
        return Coloring(pattern, kind, None, colour.column_colours(matrix, order, seed))
    if kind == "row":
        return Coloring(pattern, kind, colour.column_colours(pattern.T.to_scipy("csr"), order, seed), None)
    if kind == "bidirectional":
        return Coloring(pattern, kind, *colour.bidirectional_colours(matrix, order, seed))
    if pattern != pattern.T:
        raise ValueError(
            f"{kind} colourings are for symmetric patterns, and this one of shape {pattern.shape} is not; the pattern "
            f"of a symmetric matrix that has one triangle only is made symmetric by pattern | pattern.T"
            + at_line(user_line())
        )
    made = colour.star_colours if kind == "star" else colour.acyclic_colours
    return Coloring(pattern, kind, None, made(matrix, order, seed))
