"""The structure of the package: who may import whom, who may name JAX, and what is public."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import tables
from checks import assert_docstrings_run

import ftrans

ROOT = Path(ftrans.__file__).parent
# From the bottom up.  A module may import its own folder and those below.
LAYERS = [
    "base", "core", "xla", "ops", "rewrites", "transforms", "run", "spectral", "control", "structure", "numpy", "api",
    "solvers", "scipy", "patching", "testing", "debug", "autograd", "nn", "storage", "interop", "commands",
    "",
]  # fmt: skip
# The compiled evaluator belongs to what runs programs; rules and transformations do without.
MAY_IMPORT_XLA = {
    "xla",
    "run",
    "control",
    "numpy",
    "api",
    "solvers",
    "debug",
    "nn",
    "storage",
    "interop",
    "commands",
    "",
}
MAY_NAME_JAX = {
    "ops", "control", "run/jax_operation.py", "xla", "nn/modules/pytrees.py", "spectral", "solvers", "storage",
    "interop", "commands",
}  # fmt: skip

PUBLIC = {
    "grad", "value_and_grad", "vjp", "jvp", "linearize", "linear_transpose", "jacobian", "jacfwd", "jacrev",
    "value_and_jacobian", "hessian", "hvp", "vhp", "vmap", "jit", "stop_gradient", "trace", "cond", "scan",
    "while_loop", "fori_loop", "map", "switch", "numpy", "checkpoint", "residuals", "tap", "associative_scan", "odeint",
    "custom_vjp", "custom_jvp", "straight_through", "scale_gradient", "reverse_gradient", "clip_gradient", "grad_hook",
    "linear_solve", "root", "fixed_point", "argmin", "ConvergenceError", "ObjectArrayWarning",
    "explain", "explain_zero", "Program", "show_progress",
    "Sparsity", "Coloring", "coloring", "nlp",
    "sparse_jacobian", "value_and_sparse_jacobian", "sparse_hessian", "value_and_sparse_hessian",
    "lagrangian_hessian", "gauss_newton", "keep_memory", "matmul_precision", "patch", "patched",
    "set_cache_dir",
    "jacobian_sparsity", "hessian_sparsity",
    "taylor", "jet", "bilaplacian", "directional_derivative",
    "laplacian", "hessian_diagonal", "divergence", "curl",
    "P", "mesh", "shard", "use_mesh",
    "initialize_processes",
    "export", "load_exported", "to_onnx",
    "from_jax", "from_torch", "to_torch",
}  # fmt: skip
ERRORS = {"ConvergenceError", "ObjectArrayWarning"}
# They are JAX's own.
OF_JAX = {"P"}
PACKAGES = {f"ftrans.{name}" for name in ("autograd", "debug", "numpy", "scipy", "testing")}


def modules() -> list[Path]:
    """Every Python file of the package."""
    return sorted(ROOT.rglob("*.py"))


def place(path: Path) -> str:
    """A file's path inside the package."""
    return path.relative_to(ROOT).as_posix()


def layer(path: Path) -> str:
    """The folder that a file lies in; "" for the package itself."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else ""


@functools.cache
def imports(path: Path) -> list[tuple[str, ast.AST]]:
    """Absolute names of the modules that a file imports, each with the statement.

    Imports inside functions and for the type checker are imports, too, and those by a name that is written out.
    """
    return list(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, ast.AST]]:
    package = ("ftrans", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = node.args[0]
            if isinstance(named, ast.Constant):
                yield importlib.util.resolve_name(named.value, ".".join(package)), node
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{module}.{alias.name}", node


def test_every_folder_is_a_layer() -> None:
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert folders == set(LAYERS) - {""}


@tables.each(lambda path: layer(path) or "ftrans", path=modules())
def test_imports_point_down(path: Path) -> None:
    mine = LAYERS.index(layer(path))
    for name, node in imports(path):
        parts = name.split(".")
        if parts[0] != "ftrans":
            continue
        theirs = parts[1] if len(parts) > 1 and parts[1] in LAYERS else ""
        where = f"{place(path)}:{node.lineno} imports {name}"  # type: ignore[attr-defined]
        assert LAYERS.index(theirs) <= mine, where
        assert theirs != "xla" or layer(path) in MAY_IMPORT_XLA, where


def test_the_page_on_architecture_lists_the_folders_and_the_files_of_the_system() -> None:
    page = (ROOT.parent / "docs" / "architecture.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    folders = [name.strip(" `/") for row in rows if row.strip().endswith("/`") for name in row.split(",")]
    layers = [folder for folder in reversed(LAYERS) if folder]
    assert folders[: len(layers)] == layers
    of_modules = {p.name for p in (ROOT / "nn").iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert set(folders[len(layers) :]) == of_modules
    files = {name.strip(" `") for row in rows if row.strip().endswith(".py`") for name in row.split(",")}
    system = {p.name for folder in ("core", "transforms") for p in (ROOT / folder).glob("*.py")} - {"__init__.py"}
    assert files == system


def test_the_glossary_is_short() -> None:
    page = (ROOT.parent / "docs" / "glossary.md").read_text()
    # The first table is for newcomers to derivatives; the others have the terms of the source.
    page = page[page.index("## Programs") :]
    terms = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| term")]
    assert 40 < len(terms) <= 60


# Reverse mode makes a `rewind` of a loop, the derivatives of a `rewind` are both, and they share states.
CIRCLES = [{"control/loops/while_loop.py", "control/loops/rewind.py", "control/loops/shared_states.py"}]


def file_of(name: str) -> str | None:
    """The file that an imported name lives in; None outside of the package, and for stubs."""
    parts = name.split(".")
    if parts[0] != "ftrans":
        return None
    for length in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[1:length])
        if base.with_suffix(".pyi").is_file():
            # What only type checkers read imports nothing.
            return None
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return place(path)
    return None


def circles() -> list[set[str]]:
    """Sets of files, each of which imports all others, directly or by way of others."""
    graph = {
        place(path): {f for name, _ in imports(path) if (f := file_of(name))} - {place(path)} for path in modules()
    }

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        pending = [start]
        while pending:
            for found in graph[pending.pop()] - seen:
                seen.add(found)
                pending.append(found)
        return seen

    reach = {file: reached(file) for file in graph}
    groups = {frozenset(f for f in reach[file] if file in reach[f]) for file in graph}
    return sorted((set(group) for group in groups if len(group) > 1), key=sorted)


def test_no_circles_of_files() -> None:
    assert circles() == CIRCLES


# JAX's page on new primitives names `jax.interpreters`; the matrix of versions says when that has moved.
OPERATION = "run/jax_operation.py"


@tables.each(lambda path: layer(path) or "ftrans", path=modules())
def test_jax_is_named_lazily_and_publicly(path: Path) -> None:
    for name, node in imports(path):
        parts = name.split(".")
        if parts[0] not in ("jax", "jaxlib"):
            continue
        where = f"{place(path)}:{node.lineno} imports {name}"  # type: ignore[attr-defined]
        assert layer(path) in MAY_NAME_JAX or place(path) in MAY_NAME_JAX, where
        assert node.col_offset > 0, f"{where} when it is itself imported"  # type: ignore[attr-defined]
        assert parts[0] == "jax", where
        assert not any(part.startswith("_") for part in parts), where
        assert "interpreters" not in parts or place(path) == OPERATION, where


def test_no_private_jax_by_attribute() -> None:
    for path in modules():
        text = path.read_text()
        for private in ("jax._src", "jax.interpreters", "jaxlib"):
            assert private not in text or (private, place(path)) == ("jax.interpreters", OPERATION), (
                f"{place(path)} names {private}"
            )


# What is public


def documented() -> list[str]:
    """The public functions."""
    return sorted(PUBLIC - {"numpy"} - ERRORS - OF_JAX)


def test_public_names() -> None:
    assert set(dir(ftrans)) - set(LAYERS) == PUBLIC - {"numpy"}
    assert {n for n in vars(ftrans) if not n.startswith("_")} <= PUBLIC | set(LAYERS)
    assert isinstance(ftrans.numpy, ModuleType)


# Modules that users look into by `dir()`: it lists what is public, and nothing that these files import.
PUBLIC_MODULES = [
    "ftrans", "ftrans.autograd", "ftrans.autograd.functional", "ftrans.debug", "ftrans.nn", "ftrans.nn.functional",
    "ftrans.autograd.cuda", "ftrans.nn.distributions", "ftrans.nn.distributions.constraints",
    "ftrans.nn.init", "ftrans.nn.optim", "ftrans.nn.optim.lr_scheduler", "ftrans.nn.random", "ftrans.numpy",
    "ftrans.numpy.emath", "ftrans.numpy.fft", "ftrans.numpy.linalg", "ftrans.scipy", "ftrans.scipy.fft",
    "ftrans.scipy.integrate", "ftrans.scipy.interpolate", "ftrans.scipy.linalg", "ftrans.scipy.ndimage",
    "ftrans.scipy.optimize", "ftrans.scipy.signal", "ftrans.scipy.sparse", "ftrans.scipy.sparse.linalg",
    "ftrans.scipy.spatial", "ftrans.scipy.spatial.distance", "ftrans.scipy.spatial.transform", "ftrans.scipy.special",
    "ftrans.scipy.stats", "ftrans.testing",
    "ftrans.nn.utils", "ftrans.nn.utils.parametrizations", "ftrans.nn.utils.parametrize", "ftrans.nn.utils.rnn",
    "ftrans.nn.data", "ftrans.debug.plots",
    "ftrans.nn.utils.prune", "ftrans.nn.utils.stateless",
    "ftrans.nn.callbacks", "ftrans.nn.metrics",
]  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_dir_lists_public_names(name: str) -> None:
    module = importlib.import_module(name)
    assert dir(module) == sorted(module.__all__)
    for public in module.__all__:
        found = getattr(module, public)
        assert not isinstance(found, ModuleType) or f"{name}.{public}" in (*PUBLIC_MODULES, *PACKAGES)


@pytest.mark.parametrize("name", documented())
def test_public_docstrings(name: str) -> None:
    function = getattr(ftrans, name)
    text = inspect.getdoc(function) or ""
    assert "Example:" in text
    assert ">>>" in text
    for parameter in inspect.signature(function).parameters:
        if "Args:" in text:
            assert f"{parameter}:" in text, f"{name} does not say what {parameter} is"


@pytest.mark.parametrize("name", documented())
def test_public_names_say_where_they_live(name: str) -> None:
    assert getattr(ftrans, name).__module__.startswith(
        (
            "ftrans.api.",
            "ftrans.solvers.",
            "ftrans.patching.",
            "ftrans.core.program",
            "ftrans.debug.",
            "ftrans.storage.",
            "ftrans.interop.",
        )
    )


def every_module() -> list[str]:
    """Names of all modules of the package."""
    return ["ftrans", *(info.name for info in pkgutil.walk_packages(ftrans.__path__, "ftrans."))]


# Its examples run with tests/patching, in a process that has few objects to look through.
PATCH = "ftrans.patching.patch"


@tables.each(lambda name: ".".join(name.split(".")[:3]), name=[name for name in every_module() if name != PATCH])
def test_docstrings_run(name: str) -> None:
    assert_docstrings_run(name)
