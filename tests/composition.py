"""The table of what composes, as in `docs/composition.md`: rows are constructs, columns are ways to use them.

Every row says the same function twice: with the construct, and plainly.  A column derives something from a function;
un-jitted and compiled, it must give for the construct what it gives for the plain function.  `python
tests/composition.py` writes the table into the docs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optree

import ftrans as ft

Wrap = Callable[[Any], Any]
PAGE = Path(__file__).parent.parent / "docs" / "composition.md"

X = np.array([0.3, -0.5, 0.8])
P = np.float64(1.3)
TANGENT = np.array([0.7, 0.2, -0.4])
WEIGHTS = np.array([1.0, -2.0, 0.5])
BATCH = np.stack([X, -X, X[::-1] * 1.5])


# Columns


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function with one number as its result."""
    return lambda x: np.sum(WEIGHTS * f(x))


def pushed(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of a function along a fixed tangent."""
    return lambda x: ft.jvp(f, (x,), (TANGENT,))[1]


@dataclass(frozen=True)
class Column:
    """A way to use a function of a vector.

    Attributes:
        name: its name in the table.
        of: from the function to a function of a vector.
        forward: whether it differentiates in forward mode.
        lanes: the same for each element of a batch, where `of` gives a function of a batch.
    """

    name: str
    of: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
    forward: bool = False
    lanes: Callable[[Callable[[Any], Any]], Callable[[Any], Any]] | None = None


COLUMNS = [
    Column("jvp", pushed, forward=True),
    Column("vjp", lambda f: lambda x: ft.vjp(f, x)[1](WEIGHTS)[0]),
    Column("jacfwd", ft.jacfwd, forward=True),
    Column("jacrev", ft.jacrev),
    Column("hessian", lambda f: ft.hessian(total(f))),
    Column("reverse over reverse", lambda f: ft.jacrev(ft.grad(total(f)))),
    Column("reverse over forward", lambda f: ft.jacrev(ft.jacfwd(total(f))), forward=True),
    Column("third derivative", lambda f: ft.grad(pushed(pushed(total(f)))), forward=True),
    Column("vmap", lambda f: ft.vmap(f), lanes=lambda f: f),
    Column(
        "grad of vmap",
        lambda f: ft.grad(lambda xs: np.sum(WEIGHTS * ft.vmap(f)(xs))),
        lanes=lambda f: ft.grad(total(f)),
    ),
    Column("vmap of grad", lambda f: ft.vmap(ft.grad(total(f))), lanes=lambda f: ft.grad(total(f))),
]  # fmt: skip
CLOSURE, CONTAINERS = "closed-over value", "nested containers"


# Rows


@dataclass(frozen=True)
class Row:
    """A construct.

    Attributes:
        name: its name in the table.
        use: `(p, x, wrap, unwrap) -> y` with the construct, which closes over the number `p` and takes and returns
            what `wrap` makes of arrays.
        plain: `(p, x, at) -> y`, the same without it, where `at` is the value of `x` as a constant.
        tolerance: how far the two may differ.
        refusals: the columns that cannot be, each with a part of the error's message.
    """

    name: str
    use: Callable[[Any, Any, Wrap, Wrap], Any]
    plain: Callable[[Any, Any, Any], Any]
    tolerance: float = 1e-10
    refusals: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


ROWS: list[Row] = []


def row(
    name: str, plain: Callable[[Any, Any, Any], Any], tolerance: float = 1e-10, refusals: dict[str, str] | None = None
) -> Callable[[Any], Any]:
    """Add the decorated function as a row."""

    def add(use: Callable[[Any, Any, Wrap, Wrap], Any]) -> Any:
        ROWS.append(Row(name, use, plain, tolerance, refusals or {}))
        return use

    return add


@row("cond", lambda p, x, at: np.sin(x) * p if np.sum(x) > 0 else x**2 * p)
def _cond(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return unwrap(
        ft.cond(np.sum(x) > 0, lambda z: wrap(np.sin(unwrap(z)) * p), lambda z: wrap(unwrap(z) ** 2 * p), wrap(x))
    )


@row("switch", lambda p, x, at: [np.sin(x) * p, x**3 * p, np.exp(x) * p][int(np.sum(at > 0)) - 1])
def _switch(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    branches = [
        lambda z: wrap(np.sin(unwrap(z)) * p),
        lambda z: wrap(unwrap(z) ** 3 * p),
        lambda z: wrap(np.exp(unwrap(z)) * p),
    ]
    return unwrap(ft.switch(np.sum(x > 0) - 1, branches, wrap(x)))


def plain_scan(p: Any, x: Any, at: Any) -> Any:
    carry, out = x, 0.0
    for element in (x * 2.0, x + 1.0, np.cos(x)):
        carry = np.sin(carry) * element + p
        out = out + carry * element
    return carry + out


@row("scan", plain_scan)
def _scan(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    def step(carry: Any, element: Any) -> Any:
        new = np.sin(unwrap(carry)) * unwrap(element) + p
        return wrap(new), wrap(new * unwrap(element))

    carry, ys = ft.scan(step, wrap(x), wrap(np.stack([x * 2.0, x + 1.0, np.cos(x)])))
    return unwrap(carry) + np.sum(unwrap(ys), axis=0)


@row("scan, checkpoint=2", plain_scan)
def _nested_scan(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    def step(carry: Any, element: Any) -> Any:
        new = np.sin(unwrap(carry)) * unwrap(element) + p
        return wrap(new), wrap(new * unwrap(element))

    carry, ys = ft.scan(step, wrap(x), wrap(np.stack([x * 2.0, x + 1.0, np.cos(x)])), checkpoint=2)
    return unwrap(carry) + np.sum(unwrap(ys), axis=0)


@row("map", lambda p, x, at: np.sin(x * p) * x + np.sin(np.cos(x) * p) * np.cos(x))
def _map(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    xs = np.stack([x, np.cos(x)], axis=-1)
    return np.sum(unwrap(ft.map(lambda z: wrap(np.sin(unwrap(z) * p) * unwrap(z)), wrap(xs))), axis=-1)


def plain_fori(p: Any, x: Any, at: Any, steps: int = 4) -> Any:
    for i in range(steps):
        x = np.sin(x * p) + i * x
    return x


@row("fori_loop, static bounds", plain_fori)
def _fori(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return unwrap(ft.fori_loop(0, 4, lambda i, z: wrap(np.sin(unwrap(z) * p) + i * unwrap(z)), wrap(x)))


@row("fori_loop, traced bounds", lambda p, x, at: plain_fori(p, x, at, 2 + int(np.sum(at > 0))))
def _fori_traced(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    bound = 2 + np.sum(x > 0)
    return unwrap(ft.fori_loop(0, bound, lambda i, z: wrap(np.sin(unwrap(z) * p) + i * unwrap(z)), wrap(x)))


def plain_while(p: Any, x: Any, at: Any) -> Any:
    while np.sum(x * x) < 40.0:
        x = x * 1.5 + np.sin(x * p) * p
    return x


@row("while_loop", plain_while)
def _while(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return while_loop(p, x, wrap, unwrap)


def while_loop(p: Any, x: Any, wrap: Wrap, unwrap: Wrap, **options: Any) -> Any:
    return unwrap(
        ft.while_loop(
            lambda z: np.sum(unwrap(z) ** 2) < 40.0,
            lambda z: wrap(unwrap(z) * 1.5 + np.sin(unwrap(z) * p) * p),
            wrap(x),
            **options,
        )
    )


def plain_associative(p: Any, x: Any) -> Any:
    found = [x[0]]
    for i in (1, 2):
        found.append(found[-1] + x[i] + p * found[-1] * x[i])
    return np.stack(found)


@row("while_loop, max_steps", plain_while)
def _bounded_while(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return while_loop(p, x, wrap, unwrap, max_steps=20)


@row("associative_scan", lambda p, x, at: plain_associative(p, x) * plain_associative(p, np.sin(x)))
def _associative_scan(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    def combine(a: Any, b: Any) -> Any:
        a, b = unwrap(a), unwrap(b)
        return wrap(a + b + p * a * b)

    return np.prod(unwrap(ft.associative_scan(combine, wrap(np.stack([x, np.sin(x)], axis=-1)))), axis=-1)


def wave(p: Any, x: Any, at: Any = None) -> Any:
    return np.sin(x * p) * x


def slope(p: Any, x: Any) -> Any:
    return np.cos(x * p) * p * x + np.sin(x * p)


@row("custom_vjp", wave)
def _custom_vjp(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    @ft.custom_vjp
    def f(z: Any) -> Any:
        return wrap(wave(p, unwrap(z)))

    def backward(residuals: Any, cotangent: Any) -> Any:
        z, y = residuals
        (of_y,) = ft.vjp(wrap, y)[1](cotangent)
        return ft.vjp(unwrap, z)[1](of_y * slope(p, unwrap(z)))

    f.defvjp(lambda z: (f(z), (z, unwrap(f(z)))), backward)
    return unwrap(f(wrap(x)))


@row("custom_jvp", wave)
def _custom_jvp(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    @ft.custom_jvp
    def f(z: Any) -> Any:
        return wrap(wave(p, unwrap(z)))

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (z,) = primals
        of_x = ft.jvp(unwrap, primals, tangents)[1]
        out = f(z)
        return out, ft.jvp(wrap, (unwrap(out),), (of_x * slope(p, unwrap(z)),))[1]

    return unwrap(f(wrap(x)))


@row("Function", wave)
def _function(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    class Wave(ft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(unwrap(z))
            ctx.z = z
            return wrap(wave(p, unwrap(z)))

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            (x,) = ctx.saved_tensors
            (of_y,) = ft.vjp(wrap, wave(p, x))[1](cotangent)
            return ft.vjp(unwrap, ctx.z)[1](of_y * slope(p, x))[0]

    return unwrap(Wave.apply(wrap(x)))


@row("checkpoint", wave)
def _checkpoint(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return unwrap(ft.checkpoint(lambda z: wrap(wave(p, unwrap(z))))(wrap(x)))


MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 1.5], [0.5, 1.5, 6.0]])


def plain_solve(p: Any, x: Any, at: Any) -> Any:
    return np.linalg.inv(MATRIX * p + np.outer(x, x)) @ np.sin(x)


@row("linear_solve, dense", plain_solve)
def _dense(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return ft.linear_solve(MATRIX * p + np.outer(x, x), np.sin(x))


def matrix_free(method: str) -> Callable[[Any, Any, Wrap, Wrap], Any]:
    """A solve of the same system from products with the matrix."""

    def use(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
        def product(z: Any) -> Any:
            return wrap(MATRIX @ unwrap(z) * p + x * (x @ unwrap(z)))

        return unwrap(ft.linear_solve(product, wrap(np.sin(x)), method=method, tol=1e-13, symmetric=True))

    return use


for method in ("cg", "gmres", "bicgstab"):
    row(f"linear_solve, {method}", plain_solve, tolerance=1e-8)(matrix_free(method))


# The solution of y + sinh(y) / p = x, by as many steps of Newton's method as it takes, each of them differentiated.
def plain_root(p: Any, x: Any, at: Any) -> Any:
    y = x * 0.5
    for _ in range(9):
        y = y - (y + np.sinh(y) / p - x) / (1 + np.cosh(y) / p)
    return y


@row("root", plain_root, tolerance=1e-8)
def _root(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return unwrap(ft.root(lambda z: wrap(unwrap(z) + np.sinh(unwrap(z)) / p - x), wrap(np.zeros(3))))


def plain_fixed_point(p: Any, x: Any, at: Any) -> Any:
    y = x
    for _ in range(60):
        y = np.cos(y * 0.3 * p) * x
    return y


@row("fixed_point", plain_fixed_point, tolerance=1e-8)
def _fixed_point(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return unwrap(ft.fixed_point(lambda z: wrap(np.cos(unwrap(z) * 0.3 * p) * x), wrap(np.zeros(3))))


@row("argmin", plain_root, tolerance=1e-7)
def _argmin(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    def energy(z: Any) -> Any:
        y = unwrap(z)
        return np.sum(y * y / 2 + np.cosh(y) / p - x * y)

    return unwrap(ft.argmin(energy, wrap(np.zeros(3))))


# y' = p y (1 - y) from y(0) = 1 / (1 + exp(-x)) has this solution at t = 1.5.
@row("odeint", lambda p, x, at: 1 / (1 + np.exp(-x - 1.5 * p)), tolerance=1e-6)
def _odeint(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    def change(z: Any, t: Any) -> Any:
        return wrap(p * unwrap(z) * (1 - unwrap(z)))

    ys = ft.odeint(change, wrap(1 / (1 + np.exp(-x))), np.array([0.0, 1.5]), rtol=1e-9, atol=1e-9)
    return unwrap(ys)[1]


@row("odeint, continuous adjoint", lambda p, x, at: 1 / (1 + np.exp(-x - 1.5 * p)), tolerance=1e-6)
def _adjoint(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    def change(z: Any, t: Any) -> Any:
        return wrap(p * unwrap(z) * (1 - unwrap(z)))

    start, times = wrap(1 / (1 + np.exp(-x))), np.array([0.0, 1.5])
    return unwrap(ft.odeint(change, start, times, rtol=1e-9, atol=1e-9, adjoint="continuous"))[1]


# Gradient edits.  What derivatives see of `x` is a function of `x` and of its value `at`, taken as a constant.


@row("stop_gradient", lambda p, x, at: np.sin(x * p) * at)
def _stop_gradient(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return np.sin(x * p) * unwrap(ft.stop_gradient(wrap(x)))


@row("straight_through", lambda p, x, at: np.sin((np.round(at * 4) + p * x - P * at) * x))
def _straight_through(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return np.sin(unwrap(ft.straight_through(wrap(np.round(x * 4)), wrap(p * x))) * x)


def scaled(factor: float) -> Callable[[Any, Any, Any], Any]:
    """A function of what a scaled derivative sees."""
    return lambda p, x, at: np.sin(p * (at + factor * (x - at))) * x


@row("scale_gradient", scaled(0.25))
def _scale_gradient(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return np.sin(p * unwrap(ft.scale_gradient(wrap(x), 0.25))) * x


@row("reverse_gradient", scaled(-1.0))
def _reverse_gradient(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return np.sin(p * unwrap(ft.reverse_gradient(wrap(x)))) * x


REVERSE_ONLY = "the backward rule of clip_gradient is not linear in the cotangent"


@row(
    "clip_gradient",
    wave,
    refusals=dict.fromkeys(("jvp", "jacfwd", "reverse over forward", "third derivative"), REVERSE_ONLY),
)
def _clip_gradient(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return wave(p, unwrap(ft.clip_gradient(wrap(x), -100.0, 100.0)))


@row("grad_hook", scaled(3.0))
def _grad_hook(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    thrice = lambda cotangent: optree.tree_map(lambda c: 3.0 * c, cotangent)  # noqa: E731
    return np.sin(p * unwrap(ft.grad_hook(wrap(x), thrice))) * x


@row("tap", wave)
def _tap(p: Any, x: Any, wrap: Wrap, unwrap: Wrap) -> Any:
    return wave(p, unwrap(ft.tap("x", wrap(x))))


# The table


def nested(x: Any) -> Any:
    """A value in pieces, inside containers."""
    return {"a": (x[..., :1], [x[..., 1:]]), "none": None}


def inner(tree: Any) -> Any:
    """The value that `nested` put into containers."""
    return np.concatenate([tree["a"][0], tree["a"][1][0]], axis=-1)


def identity(x: Any) -> Any:
    """The value itself."""
    return x


Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def cell(row: Row, column: str) -> tuple[Callable[[Any], Any], Any, Any]:
    """A function that a cell of the table is about, the argument to call it with, and what it has to give."""
    use = lambda x: row.use(P, x, identity, identity)  # noqa: E731

    def plain(at: Any) -> Callable[[Any], Any]:
        return lambda x: row.plain(P, x, at)

    if column == CLOSURE:
        f = ft.grad(lambda p: total(lambda x: row.use(p, x, identity, identity))(X))
        return f, P, ft.grad(lambda p: total(lambda x: row.plain(p, x, X))(X))(P)
    if column == CONTAINERS:
        f = ft.grad(total(lambda x: row.use(P, x, nested, inner)))
        return f, X, ft.grad(total(plain(X)))(X)
    found = next(c for c in COLUMNS if c.name == column)
    if found.lanes is not None:
        return found.of(use), BATCH, np.stack([found.lanes(plain(x))(x) for x in BATCH])
    return found.of(use), X, found.of(plain(X))(X)


NAMES = [*(c.name for c in COLUMNS), CLOSURE, CONTAINERS]


def table() -> str:
    """The table, in Markdown."""
    notes: list[str] = []

    def mark(row: Row, name: str) -> str:
        message = row.refusals.get(name)
        if message is None:
            return "✓"
        if message not in notes:
            notes.append(message)
        return f"no ({notes.index(message) + 1})"

    lines = [f"| | {' | '.join(NAMES)} |", "|---" * (len(NAMES) + 1) + "|"]
    lines += [f"| {row.name} | {' | '.join(mark(row, name) for name in NAMES)} |" for row in ROWS]
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    return "\n".join(lines).rstrip()


START, END = "<!-- table -->", "<!-- end of table -->"


def with_table(page: str) -> str:
    """The text of the page, with the table of now."""
    before, _, rest = page.partition(START)
    return f"{before}{START}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
