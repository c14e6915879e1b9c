"""Writes docs/coverage.md: what becomes of each public function of NumPy and SciPy on traced values.

    python docs/make_coverage.py

What a function is says the code itself: its table of traced forms, its sets of constant and refused functions, and
the rows that the tests run.  Only what takes no traced values at all is listed here.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import jax
import numpy as np

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "coverage.md"
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import function_rows  # noqa: E402
import thirdparty  # noqa: E402

import ftrans as ft  # noqa: E402
import ftrans.numpy.fft  # noqa: E402
import ftrans.numpy.linalg  # noqa: E402
import ftrans.scipy  # noqa: E402
from ftrans.core.primitive import Primitive  # noqa: E402
from ftrans.core.program import Program  # noqa: E402
from ftrans.core.types import ArrayType, is_complex, is_inexact  # noqa: E402
from ftrans.numpy.dispatch import CONSTANT, REFUSED, TABLE  # noqa: E402
from ftrans.spectral import limit  # noqa: E402

# Namespaces of which every public function has an entry, and those of which ftrans.scipy mirrors a part.
WHOLE = ("numpy", "numpy.linalg", "numpy.fft", "scipy.special")
MIRRORED = (
    "scipy.linalg",
    "scipy.stats",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.signal",
    "scipy.ndimage",
    "scipy.spatial",
    "scipy.spatial.distance",
    "scipy.spatial.transform",
    "scipy.sparse",
    "scipy.sparse.linalg",
    "scipy.optimize",
)

# Functions that are called with plain arguments (sizes, names, files), and their results are constants.
PLAIN = {
    "numpy": {
        "creation": """
            arange bartlett blackman diag_indices diag_indices_from eye from_dlpack frombuffer fromfile fromiter
            fromregex fromstring genfromtxt hamming hanning identity index_exp indices kaiser load loadtxt
            mask_indices memmap mgrid ndenumerate ndindex ogrid recarray record s_ tri tril_indices tril_indices_from
            triu_indices triu_indices_from
        """,
        "shapes and dtypes": """
            broadcast_shapes datetime_data dtype finfo iinfo isdtype isscalar issubdtype iterable min_scalar_type
            mintypecode promote_types typename ndarray ufunc
        """,
        "printing": """
            array2string base_repr binary_repr format_float_positional format_float_scientific get_printoptions
            printoptions set_printoptions
        """,
        "the library itself": """
            einsum_path errstate get_include getbufsize geterr geterrcall info setbufsize seterr seterrcall show_config
            show_runtime test busdaycalendar
        """,
    },
    "numpy.linalg": {"errors": "LinAlgError"},
    "scipy.optimize": {"can hold traced values": "Bounds LinearConstraint NonlinearConstraint"},
    "scipy.special": {
        "errors": "SpecialFunctionError SpecialFunctionWarning errstate geterr seterr",
        "takes integers": """
            bernoulli erf_zeros euler factorial2 factorialk fresnel_zeros fresnelc_zeros fresnels_zeros stirling2
        """,
    },
}

# Solvers that the tests run by themselves, not by rows; SciPy looks for the solution on the host.
SOLVERS = {
    "scipy.optimize": """
        anderson bisect brent brenth broyden1 broyden2 curve_fit differential_evolution direct dual_annealing
        fixed_point fmin fmin_bfgs fmin_cg fmin_ncg fmin_powell fminbound fsolve golden least_squares leastsq lsq_linear
        minimize_scalar newton newton_krylov ridder root_scalar shgo toms748
    """,
}

METHODS_OF_UFUNCS = ("reduce", "reduceat", "accumulate", "outer", "at")

# What is called with brackets.
SUBSCRIPTED = ("c_", "index_exp", "mgrid", "ogrid", "r_", "s_")

# Names that some versions of NumPy have, and what they have become.
OLD_NAMES = {"numpy": {"row_stack": "vstack", "trapz": "trapezoid"}}

# What the table and the rows do not say.
REMARKS = {
    "numpy.arange": "takes plain arguments; `ftrans.numpy.arange` takes traced integers",
    "numpy.histogram": "with respect to the weights; counts are constant",
    "numpy.bincount": "with respect to the weights",
    **dict.fromkeys(("numpy.linalg.eig", "numpy.linalg.eigvals", "numpy.roots"), "eigenvalues on the host of a GPU"),
    "numpy.heaviside": "with respect to the value at 0",
    "numpy.nextafter": "with respect to the first argument",
    "numpy.sign": "constant for real numbers",
    "numpy.full": "can take traced elements only if you create it with `ftrans.numpy`",
    "numpy.zeros": "can take traced elements only if you create it with `ftrans.numpy`",
    "numpy.ones": "can take traced elements only if you create it with `ftrans.numpy`",
    "numpy.empty": "can take traced elements only if you create it with `ftrans.numpy`",
}


@dataclass(frozen=True)
class Entry:
    """What becomes of one function on traced values.

    Attributes:
        names: its name in the namespace, then further names of the same function.
        kind: "differentiable", "constant", "refused", or "" where nothing says so.
        compiled: what runs it under `jit`: "XLA", "host", both, depending on the arguments, or "no".
        dtypes: short names of the dtypes that derivatives are tested in.
        remark: what else is to be said; of a refused function the reason and the alternative.
    """

    names: tuple[str, ...]
    kind: str
    compiled: str = ""
    dtypes: str = ""
    remark: str = ""


def public(namespace: str) -> dict[str, Any]:
    """The public callables of a namespace, by name; of one that is mirrored, those that ftrans.scipy has."""
    module = importlib.import_module(namespace)
    if namespace in MIRRORED:
        return dict(_mirrored(namespace))
    names = [n for n in dir(module) if not n.startswith("_")] if namespace == "numpy" else module.__all__
    found = {name: getattr(module, name) for name in names}
    called = {n: f for n, f in found.items() if callable(f) and not isinstance(f, ModuleType)}
    return called | {n: found[n] for n in SUBSCRIPTED if n in found}


def _mirrored(namespace: str) -> Iterator[tuple[str, Any]]:
    original, mirror = importlib.import_module(namespace), importlib.import_module(f"ftrans.{namespace}")
    for name in mirror.__all__:
        if callable(getattr(original, name)):
            yield name, getattr(original, name)


def methods(namespace: str, name: str) -> list[str]:
    """The methods that ftrans.scipy has of a distribution."""
    found = getattr(importlib.import_module(f"ftrans.{namespace}"), name)
    return [] if isinstance(found, FunctionType) else sorted(m for m, method in vars(found).items() if callable(method))


def plain_names(namespace: str) -> dict[str, str]:
    """The functions that take plain arguments, each with its theme."""
    return {name: theme for theme, names in PLAIN.get(namespace, {}).items() for name in names.split()}


def rows_by_name() -> dict[str, list[function_rows.Row]]:
    """The rows of each function, by its full name; that of a method is a row of the ufunc or the distribution."""
    found: dict[str, list[function_rows.Row]] = {}
    for row in function_rows.rows():
        name = row.name.removeprefix("ftrans.")
        base, _, method = name.rpartition(".")
        if base.startswith("scipy.stats.") or (method in METHODS_OF_UFUNCS and _is_ufunc(base)):
            name = base
        found.setdefault(name, []).append(row)
    return found


def _is_ufunc(name: str) -> bool:
    namespace, _, short = name.rpartition(".")
    return bool(namespace) and isinstance(getattr(importlib.import_module(namespace), short, None), np.ufunc)


@functools.cache
def entries(namespace: str) -> list[Entry]:
    """The entries of a namespace, in alphabetical order."""
    functions, plain, rows = public(namespace), plain_names(namespace), rows_by_name()
    names_of: dict[Any, list[str]] = {}
    for name, function in sorted(functions.items()):
        if name in OLD_NAMES.get(namespace, {}):
            continue
        names_of.setdefault(function if namespace in WHOLE else name, []).append(name)
    found = [_entry(namespace, names, functions[names[0]], plain, rows) for names in names_of.values()]
    # Names that only other versions of the library have.
    gone = [n for n in REFUSED if n.rpartition(".")[0] == namespace and n.rpartition(".")[2] not in functions]
    found += [Entry((n.rpartition(".")[2],), "refused", remark=REFUSED[n]) for n in gone]
    for old, new in OLD_NAMES.get(namespace, {}).items():
        same = next(e for e in found if new in e.names)
        found.append(replace(same, names=(old,), remark=f"an old name of `{new}`"))
    return sorted(found, key=lambda e: e.names[0].lower())


def _entry(
    namespace: str,
    names: list[str],
    function: Any,
    plain: dict[str, str],
    rows: dict[str, list[function_rows.Row]],
) -> Entry:
    names = sorted(names, key=lambda n: n != getattr(function, "__name__", n))
    full = [f"{namespace}.{n}" for n in names]
    mine = [r for n in full for r in rows.get(n, [])]
    of_distribution = methods(namespace, names[0]) if namespace == "scipy.stats" else []
    remark = next((REMARKS[n] for n in full if n in REMARKS), ", ".join(of_distribution))
    if any(n in REFUSED for n in full):
        return Entry(tuple(names), "refused", remark=next(REFUSED[n] for n in full if n in REFUSED))
    if function in CONSTANT:
        return Entry(tuple(names), "constant", remark=remark or "integers, booleans, or constant between jumps")
    if mine:
        return _differentiable(names, mine, remark)
    if names[0] in SOLVERS.get(namespace, "").split():
        return Entry(tuple(names), "differentiable", "host", "f64", remark)
    if isinstance(function, type) and issubclass(function, np.generic):
        return Entry(tuple(names), "constant", remark="a dtype")
    if any(n in plain for n in names):
        return Entry(tuple(names), "constant", remark=remark or next(plain[n] for n in names if n in plain))
    if (
        namespace.startswith("scipy")
        and getattr(importlib.import_module(f"ftrans.{namespace}"), names[0], 0) is function
    ):
        return Entry(tuple(names), "constant", remark="takes plain arguments")
    return Entry(tuple(names), "differentiable" if function in TABLE or namespace in MIRRORED else "")


def _differentiable(names: list[str], rows: list[function_rows.Row], remark: str) -> Entry:
    variants = [v for r in rows for v in r.variants()]
    dtypes = {x.dtype for v in variants for x in v.draw() if is_inexact(x.dtype)}
    ordered = sorted(dtypes, key=lambda d: (d.kind == "c", d.itemsize))
    remarks = ["first derivatives only"] if all(r.order == 1 for r in rows) else []
    if all(r.asks for r in rows):
        remarks.append("shape depends on values: not under `jit`; under `vmap` if it is the same for all")
    # A precision changes nothing about where a function runs.
    kinds = [v for r in rows if not r.asks for v in (r, *(r.with_dtype(d) for d in r.dtypes if is_complex(d)))]
    places = {runs_on_host(v) for v in kinds}
    return Entry(
        tuple(names),
        "differentiable",
        ", ".join({False: "XLA", True: "host"}[place] for place in sorted(places)) or "no",
        ", ".join(f"{d.kind}{8 * d.itemsize}" for d in ordered),
        "; ".join([*remarks, *([remark] if remark else [])]),
    )


def runs_on_host(row: function_rows.Row) -> bool:
    """Whether the compiled value or derivative of a row calls SciPy on the host."""
    operands = row.draw()

    def derivative(*xs: Any) -> Any:
        full = list(operands)
        for i, x in zip(row.places, xs, strict=True):
            full[i] = x
        return row.function(traced=True)(*full)

    xs = [operands[i] for i in row.places]
    tangents = row.tangents(operands, seed=1)
    program = ft.trace(lambda xs, ts: ft.jvp(derivative, tuple(xs), tuple(ts)))(xs, tangents)
    return any(
        _calls_host(e.primitive, tuple(a.type for a in e.operands), *e.params.items()) for e in _equations(program)
    )


@functools.cache
def _calls_host(primitive: Primitive, types: tuple[ArrayType, ...], *params: tuple[str, Any]) -> bool:
    """Whether an equation, compiled for a CPU, calls Python."""
    if primitive is limit or not hasattr(sys.modules[type(primitive).__module__], "on_host"):
        return False
    with jax.enable_x64(True):
        operands = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in types]
        return "callback" in jax.jit(lambda *xs: primitive.xla(*xs, **dict(params))).lower(*operands).as_text()


def _equations(program: Program) -> Iterator[Any]:
    yield from program.eqns
    for inner in program.subprograms():
        yield from _equations(inner)


INTRODUCTION = """# Supported functions of NumPy and SciPy

Look up here whether you can differentiate a function of NumPy or SciPy, and how it runs under `jit`. Functions are in
alphabetical order.

*Differentiable* functions have derivatives in forward and reverse mode, to second order, and work under `vmap` and
`jit`. The tests check this in the dtypes shown; complex numbers follow JAX's convention (see
[semantics.md](semantics.md#complex-numbers)). Under `jit` a function runs in XLA, or calls SciPy on the host if XLA has
no such operation; which of the two can depend on arguments and methods. Derivatives of eigenvectors and singular
vectors are computed on the host if values are equal. If an array is sharded over devices, a function on the host
gathers it on one device, and the result is replicated on all devices ([scale.md](scale.md)); `ft.debug.cost` says where
this happens.

*Constant* functions have integer or boolean results, or results that are constant between jumps, so their derivative is
zero; or they take plain arguments only.

*Refused* functions raise an error on traced values. The table gives the reason, and what to write instead.

`docs/make_coverage.py` writes this page from the code and from the rows that the tests run, and a test keeps it
complete.
"""


def lines(namespace: str) -> list[str]:
    """The section of a namespace on the page."""
    found = entries(namespace)

    def table(kind: str, *heads: str) -> list[str]:
        return ["", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)] + [
            f"| {' | '.join(_cells(e)[: len(heads)])} |" for e in found if e.kind == kind
        ]

    text = [f"## {namespace}", *table("differentiable", "differentiable", "under `jit`", "dtypes", "remarks")]
    if any(e.kind == "constant" for e in found):
        text += table("constant", "constant", "why")
    if any(e.kind == "refused" for e in found):
        text += table("refused", "refused", "why, and what to write instead")
    return [*text, ""]


def _cells(entry: Entry) -> list[str]:
    names = ", ".join(f"`{n}`" for n in entry.names)
    return [names, entry.compiled, entry.dtypes, entry.remark] if entry.compiled else [names, entry.remark]


def of_other_packages() -> list[str]:
    """The section of the collection of other packages: which of its functions are refused in which modes, and why."""
    packages = {row.package for row in thirdparty.ROWS} - {"thirdparty"}
    refused = [(row.name, mode, why) for row in thirdparty.ROWS for mode, why in row.reasons.items() if mode != "value"]
    return [
        "## Other packages",
        "",
        f"`make test-thirdparty` differentiates functions of {len(packages)} packages under `ft.patch`, in four modes. "
        "In the modes given, these raise an error:",
        "",
        "| function | mode | why |",
        "|---|---|---|",
        *(f"| `{name}` | `{mode}` | {why} |" for name, mode, why in refused),
        "",
    ]


def page() -> str:
    """The page."""
    sections = ["\n".join(lines(namespace)) for namespace in (*WHOLE, *MIRRORED)]
    return "\n".join([INTRODUCTION, *sections, *of_other_packages()])


if __name__ == "__main__":
    PAGE.write_text(page())
