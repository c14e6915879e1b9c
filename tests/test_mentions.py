"""What pages and messages tell users to write exists: each `ft.NAME`, `nn.NAME` and the like is looked up."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.cluster.vq
import tables
from doc_pages import FENCE

import ftrans as ft

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = [*(ROOT / name for name in FILES), *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]
# What pages import these modules as.
MODULES = {
    "ft": "ftrans",
    "ftrans": "ftrans",
    "np": "numpy",
    "nn": "ftrans.nn",
    "F": "ftrans.nn.functional",
    "D": "ftrans.nn.distributions",
    "optim": "ftrans.nn.optim",
    "autograd": "ftrans.autograd",
    "integrate": "ftrans.scipy.integrate",
    "optimize": "ftrans.scipy.optimize",
    "stats": "ftrans.scipy.stats",
}
MENTIONED = re.compile(rf"(?<![\w./])({'|'.join(MODULES)})((?:\.[A-Za-z_]\w*)+)")
SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)


def exists(name: str) -> bool:
    """Whether a dotted name is that of a module or of something in one; what instances of classes have is not known."""
    root, *names = name.split(".")
    path = MODULES[root]
    found = importlib.import_module(path)
    for part in names:
        path += f".{part}"
        if hasattr(found, part):
            found = getattr(found, part)
        elif isinstance(found, type):
            return True
        else:
            try:
                found = importlib.import_module(path)
            except ImportError:
                return False
    return True


def missing(text: str) -> list[str]:
    return [match[0] for match in MENTIONED.finditer(text) if not exists(match[0])]


def spans(page: Path) -> Iterator[str]:
    """The code in sentences and tables of a page; blocks run."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    if page.name == "coming_from.md":
        # The first column has the spellings of other libraries.
        text = re.sub(r"^\|[^|]*\|", "|", text, flags=re.MULTILINE)
    for match in SPAN.finditer(text):
        yield match[2]


@tables.each(lambda page: page.name, page=PAGES)
def test_names_on_pages_exist(page: Path) -> None:
    assert not [name for span in spans(page) for name in missing(span)]


def messages(file: Path) -> Iterator[str]:
    """The texts of a file that have several words: messages and docstrings."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def test_names_in_messages_exist() -> None:
    found = {text for file in (ROOT / "ftrans").rglob("*.py") for text in messages(file)}
    names = {match[0] for text in found for match in re.finditer(r"(?<![\w./])(?:ft|ftrans)(?:\.[A-Za-z_]\w*)+", text)}
    assert len(names) > 100
    assert not {name for name in names if not exists(name)}


@pytest.mark.parametrize("name", ["ft.black_box", "nn.Linea", "ft.testing.check_grad", "optimize.minimise"])
def test_names_that_are_not_there_are_found(name: str) -> None:
    assert missing(f"write {name}(x)") == [name]


class Whiten(ft.autograd.Function):
    """A function of SciPy that has no traced form, with its derivative for a fixed deviation."""

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        ctx.deviation = np.std(np.asarray(x.detach()), axis=0)
        return ft.autograd.tensor(scipy.cluster.vq.whiten(np.asarray(x.detach())))

    @staticmethod
    def backward(ctx, ct):  # type: ignore[no-untyped-def]
        return ct / ctx.deviation


@pytest.mark.parametrize("compiled", [False, True])
def test_the_way_out_for_code_without_a_traced_form(compiled: bool) -> None:
    x = np.array([[1.0, 2.0], [3.0, 6.0]])
    with pytest.raises(TypeError, match=r"ft\.autograd\.Function"):
        ft.grad(lambda x: np.sum(scipy.cluster.vq.whiten(x)))(x)
    gradient = ft.grad(lambda x: np.sum(Whiten.apply(x) ** 2))
    expected = 2 * x / np.std(x, axis=0) ** 2
    np.testing.assert_allclose((ft.jit(gradient) if compiled else gradient)(x), expected, rtol=1e-12)
