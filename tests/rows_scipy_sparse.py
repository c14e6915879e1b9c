"""Rows of `scipy.sparse` and `scipy.sparse.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from function_rows import row
from sampling import f32, normal

from ftrans.scipy import sparse

ONCE: dict[str, Any] = {"dtypes": ()}
ROWS, COLS = np.array([0, 2, 1, 0, 2]), np.array([0, 1, 2, 0, 2])
ENTRIES = normal((5,))
# Of a symmetric matrix with distinct eigenvalues, which is positive definite.
LINES, PLACES = np.array([0, 1, 2, 3, 0, 1, 2, 1, 2, 3]), np.array([0, 1, 2, 3, 1, 2, 3, 0, 1, 2])
PLAIN = scipy.sparse.csc_array(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 1]]))


def dense(make: Any, data: Any) -> Any:
    return make((data, (ROWS, COLS)), shape=(3, 3)).toarray()


for kind in ("bsr", "coo", "csc", "csr", "dok", "lil"):
    if kind in ("dok", "lil"):
        call = lambda f, x: f(x).toarray()  # noqa: E731
        sources: Any = [normal((2, 3))]
    else:
        call, sources = dense, [ENTRIES]
    for name in (f"{kind}_array", f"{kind}_matrix"):
        more = {"dtypes": (f32,)} if name == "csr_array" else ONCE
        row(f"scipy.sparse.{name}", *sources, call=call, **more)
for name in ("dia_array", "dia_matrix"):
    row(f"scipy.sparse.{name}", normal((2, 3)), call=lambda f, x: f((x, [0, 1]), shape=(3, 3)).toarray(), **ONCE)
row("scipy.sparse.diags", normal((3,)), call=lambda f, x: f([x, 2 * x], [0, 1], shape=(3, 4)).toarray(), **ONCE)
row("scipy.sparse.diags_array", normal((3,)), call=lambda f, x: f(x, offsets=1).toarray(), **ONCE)
row("scipy.sparse.spdiags", normal((2, 3)), call=lambda f, x: f(x, [0, -1], 3, 3).toarray(), **ONCE)


def of_parts(name: str, call: Any) -> None:
    """A row of a function of sparse arrays, one of which has entries that are differentiated."""

    def full(f: Any, x: Any) -> Any:
        return call(f, sparse.csr_array((x, (ROWS, COLS)), shape=(3, 3))).toarray()

    row(f"scipy.sparse.{name}", ENTRIES, call=full, **ONCE)


of_parts("kron", lambda f, a: f(a, PLAIN))
of_parts("kronsum", lambda f, a: f(a, PLAIN))
of_parts("hstack", lambda f, a: f([a, PLAIN]))
of_parts("vstack", lambda f, a: f([a, PLAIN]))
of_parts("bmat", lambda f, a: f([[a, None], [None, PLAIN]]))
of_parts("block_array", lambda f, a: f([[a, PLAIN], [None, a]]))
of_parts("block_diag", lambda f, a: f([a, PLAIN]))
of_parts("tril", lambda f, a: f(a))
of_parts("triu", lambda f, a: f(a, 1))


def matrix(x: Any, kind: str = "csc_array") -> Any:
    # Off the diagonal the entries are small.
    data = sparse.csr_array((np.sin(x), (LINES[:4], PLACES[:4])), shape=(4, 4)).data
    data = np.concatenate([data + np.arange(2.0, 6.0), 0.1 + 0.1 * np.sin(x[:3]), 0.1 + 0.1 * np.sin(x[:3])])
    return getattr(sparse, kind)((data, (LINES, PLACES)), shape=(4, 4))


def of_matrix(name: str, call: Any, *sources: Any, **options: Any) -> None:
    def full(f: Any, x: Any, *others: Any) -> Any:
        return call(f, matrix(x), *others)

    row(f"scipy.sparse.linalg.{name}", normal((4,)), *sources, call=full, **{**ONCE, "looseness": 10.0, **options})


RIGHT = normal((4,))
TIGHT = {"rtol": 1e-14}
of_matrix("spsolve", lambda f, a, b: f(a, b), normal((4, 2)))
of_matrix("spsolve_triangular", lambda f, a, b: f(sparse.tril(a, format="csr"), b), RIGHT)
of_matrix("splu", lambda f, a, b: f(a).solve(b, "T"), RIGHT)
of_matrix("factorized", lambda f, a, b: f(a)(b), RIGHT)
of_matrix("cg", lambda f, a, b: f(a, b, **TIGHT)[0], RIGHT, looseness=1e3)
of_matrix("bicgstab", lambda f, a, b: f(a, b, **TIGHT)[0], RIGHT, looseness=1e3)
of_matrix("gmres", lambda f, a, b: f(a, b, **TIGHT)[0], RIGHT, looseness=1e3)
of_matrix("eigsh", lambda f, a: f(a, 2)[0], looseness=100)
of_matrix("svds", lambda f, a: f(a, 2, return_singular_vectors=False), looseness=100)
of_matrix("expm_multiply", lambda f, a, b: f(a, b), RIGHT)
of_matrix("norm", lambda f, a: f(a))


def closed_over(f: Any, x: Any) -> Any:
    """A solution of equations whose operator uses traced values."""
    operator = f((4, 4), matvec=lambda v: np.exp(x) * v)
    return sparse.linalg.cg(operator, np.ones(4), **TIGHT)[0]


row("scipy.sparse.linalg.LinearOperator", normal((4,)), call=closed_over, **{**ONCE, "looseness": 10.0})
