"""Pictures of programs: what is on them, their text, and the files that they are written to."""

from __future__ import annotations

import functools
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.core.program import Program, Var
from ftrans.debug.draw import Drawing

random = np.random.default_rng(0)


def network(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> Any:
    h = np.tanh(x @ w1 + b1)
    h = np.tanh(h @ w2 + b2)
    return np.mean((h @ w3 + b3 - y) ** 2)


def step(y: Any, t: Any, h: Any) -> Any:
    def f(y: Any, t: Any) -> Any:
        return np.stack([y[1], -y[0] - 0.1 * y[1] + np.cos(t)])

    k1 = f(y, t)
    k2 = f(y + h / 2 * k1, t + h / 2)
    k3 = f(y + h / 2 * k2, t + h / 2)
    k4 = f(y + h * k3, t + h)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def likelihood(scale: Any, noise: Any, x: Any, y: Any) -> Any:
    squares = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    k = np.exp(-0.5 * squares / np.exp(2 * scale)) + np.exp(2 * noise) * np.eye(len(x))
    return 0.5 * y @ np.linalg.solve(k, y) + np.sum(np.log(np.diag(np.linalg.cholesky(k))))


def loop(c: Any, xs: Any) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = np.tanh(c * h + x)
        return h, h**2

    h, ys = ft.scan(body, np.zeros(3), xs)
    return ft.cond(h.sum() > 0, np.sum, lambda h: np.sum(h * h), h) + ys.sum()


SHAPES = [(4, 5), (5,), (5, 5), (5,), (5, 2), (2,), (6, 4), (6, 2)]
ARGUMENTS: dict[str, tuple[Any, list[Any]]] = {
    "network": (network, [random.normal(size=shape) for shape in SHAPES]),
    "step": (step, [np.array([1.0, 0.0]), 0.0, 0.1]),
    "likelihood": (likelihood, [0.1, -2.0, random.normal(size=(5, 2)), random.normal(size=5)]),
    "loop": (loop, [0.5, random.normal(size=(4, 3))]),
}


def program_of(name: str) -> Program:
    f, args = ARGUMENTS[name]
    return ft.trace(f)(*args)


@pytest.fixture(params=[(name, backward) for name in ARGUMENTS for backward in (False, True)], ids=str)
def drawing(request: pytest.FixtureRequest) -> Drawing:
    name, backward = request.param
    return ft.debug.draw(program_of(name), backward=backward)


# What is on it


def test_every_input_equation_and_result_has_a_node(drawing: Drawing) -> None:
    nodes, program = drawing.graph.nodes, drawing.program
    assert [n.eqn for n in nodes if n.eqn is not None] == list(program.eqns)
    kinds = Counter(n.kind for n in nodes)
    assert kinds["input"] == len(program.inputs)
    assert kinds["result"] == len(program.outputs)
    for node in nodes:
        if node.eqn is not None:
            assert node.title[1] == node.eqn.primitive.name
            assert str(node.eqn.outputs[0].type) in node.lines[-1]
            assert "test_draw.py" in node.tooltip


def test_edges_are_what_equations_take(drawing: Drawing) -> None:
    program, nodes = drawing.program, drawing.graph.nodes
    place = {n.eqn: i for i, n in enumerate(nodes) if n.eqn is not None}
    maker = dict(zip(program.inputs, range(len(program.inputs)), strict=True))
    maker.update((v, place[eqn]) for eqn in program.eqns for v in eqn.outputs)
    expected = {(maker[a], place[eqn], a) for eqn in program.eqns for a in eqn.operands if isinstance(a, Var)}
    first = len(nodes) - len(program.outputs)
    expected |= {(maker[a], first + i, a) for i, a in enumerate(program.outputs) if isinstance(a, Var)}
    edges = drawing.graph.edges
    assert {(e.source, e.target, e.var) for e in edges} == expected
    assert len(edges) == len(expected)


def test_letters_are_those_of_print() -> None:
    drawing = ft.debug.draw(program_of("step"))
    printed = str(drawing.program)
    for node in drawing.graph.nodes:
        if node.eqn is not None and node.kind == "equation":
            letter = node.title[0].split(" =")[0]
            assert f"\n  {letter}: {node.eqn.outputs[0].type} = {node.eqn.primitive.name}(" in printed


def test_names_of_inputs() -> None:
    program = ft.trace(lambda x, y: np.sin(x) * y + x)(1.0, 2.0)
    drawing = ft.debug.draw(program, names=["c", "angle"])
    titles = ["".join(n.title) for n in drawing.graph.nodes]
    assert titles[:2] == ["c", "angle"]
    # A name that is taken is no letter of another variable.
    made = [t.split(" = ")[0] for t in titles if " = " in t]
    assert "c" not in made
    assert len(set(made)) == len(made)
    assert any("mul(" in t and "angle" in t for t in titles)


def test_constants_are_written_into_equations() -> None:
    program = ft.trace(lambda x: 2.5 * x + np.arange(40.0) - np.pi)(np.ones(40))
    titles = [n.title[2] for n in ft.debug.draw(program).graph.nodes]
    assert any("2.5" in t for t in titles)
    assert any("3.14159" in t and "3.141592" not in t for t in titles)
    assert any("const[40]" in t for t in titles)


def test_constant_and_forwarded_results() -> None:
    drawing = ft.debug.draw(ft.trace(lambda x, y: (x, 1.0))(2.0, 3.0))
    assert [(e.source, e.target) for e in drawing.graph.edges] == [(0, 2)]
    assert "".join(drawing.graph.nodes[-1].title) == "return 1.0"


def test_what_only_arranges_is_small() -> None:
    nodes = ft.debug.draw(ft.trace(lambda x: np.sin(x[1:3]).reshape(2, 1))(np.ones(4))).graph.nodes
    assert [n.kind for n in nodes] == ["input", "plumbing", "equation", "plumbing", "result"]
    assert "".join(nodes[1].title).endswith("a[1:3]")


def test_scopes_are_named() -> None:
    def f(x: Any) -> Any:
        with ft.debug.scope("encoder"):
            return np.sin(x)

    assert "in encoder" in ft.debug.draw(ft.trace(f)(1.0)).dot


def test_subprograms() -> None:
    program = program_of("loop")
    plain, expanded = ft.debug.draw(program), ft.debug.draw(program, expand=True)
    assert not plain.graph.subgraphs
    assert [g.program for _, g in expanded.graph.subgraphs] == list(program.subprograms())
    holders = [n for n in plain.graph.nodes if n.holds_programs]
    assert [n.title[1] for n in holders] == ["scan", "cond"]
    assert any("5 equations" in line for line in holders[0].lines)
    assert expanded.dot.count("in c, d = scan(...)") == 1


# The way back


@pytest.mark.parametrize("name", ["network", "likelihood", "loop"])
def test_backward_program_computes_the_gradient(name: str) -> None:
    f, args = ARGUMENTS[name]
    numbers = tuple(range(len(args)))
    drawing = ft.debug.draw(program_of(name), backward=True)
    value, *gradients = drawing.program(*args, 1.0)
    expected = ft.grad(f, argnums=numbers)(*args)
    np.testing.assert_allclose(value, f(*args), rtol=1e-12)
    for got, want in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", list(ARGUMENTS))
def test_backward_is_what_depends_on_the_incoming_gradient(name: str) -> None:
    program = program_of(name)
    graph = ft.debug.draw(program, backward=True).graph
    seeds = range(len(program.inputs), len(graph.program.inputs))
    reached = set(seeds)
    for edge in sorted(graph.edges, key=lambda e: e.target):
        if edge.source in reached:
            reached.add(edge.target)
    assert {i for i, n in enumerate(graph.nodes) if n.part == "backward"} == reached
    for edge in graph.edges:
        assert edge.is_residual == (edge.source not in reached and edge.target in reached)
    assert any(e.is_residual for e in graph.edges)


def test_backward_titles() -> None:
    program = ft.trace(lambda w, x: (np.sin(w) * x, np.floor(x)))(1.0, 2.0)
    drawing = ft.debug.draw(program, backward=True, names=["w", "x"], argnums=0)
    titles = ["".join(n.title) for n in drawing.graph.nodes if n.kind in ("input", "result")]
    assert sum("gradient of" in t for t in titles) == 2
    assert any(t.startswith("gradient of w = ") for t in titles)
    assert 'label="forward"' in drawing.dot
    assert "kept for the way back" in drawing.dot
    both = ft.debug.draw(program, backward=True, argnums=[0, -1]).graph
    assert sum(n.kind == "result" and n.part == "backward" for n in both.nodes) == 2


# Its text, and the files


def statements(dot: str) -> list[str]:
    return [row.strip() for row in dot.splitlines()]


def test_text_has_each_node_and_edge_once(drawing: Drawing) -> None:
    rows = statements(drawing.dot)
    nodes = [m for row in rows if (m := re.fullmatch(r'n(\d+) \[label=<(.*)> tooltip="[^"]*" .*\]', row))]
    parts = [node.part for node in drawing.graph.nodes]
    assert [int(m[1]) for m in nodes] == sorted(range(len(parts)), key=lambda i: parts[i] != "forward")
    for found in nodes:
        node = drawing.graph.nodes[int(found[1])]
        text = "".join(ElementTree.fromstring(f"<label>{found[2]}</label>").itertext())
        assert text.startswith("".join(node.title))
        assert all(line in text for line in node.lines)
    edges = [tuple(map(int, m.groups())) for row in rows if (m := re.match(r"n(\d+) -> n(\d+) \[", row))]
    # What flows up is written from its end.
    ends = [(e.source, e.target) for e in drawing.graph.edges]
    rises = [parts[source] == "backward" for source, _ in ends]
    expected = [end[::-1] if r else end for end, r in zip(ends, rises, strict=True)]
    assert edges == expected
    assert drawing.dot.count("dir=back") == sum(rises)
    assert drawing.dot.count("style=dashed") == sum(e.is_residual for e in drawing.graph.edges)
    assert drawing.dot.count("{") == drawing.dot.count("}") == (3 if drawing.graph.has_backward else 1)


def test_sub_programs_hang_on_the_equations_that_run_them() -> None:
    drawing = ft.debug.draw(program_of("loop"), expand=True)
    owners = [owner for owner, _ in drawing.graph.subgraphs]
    assert owners
    assert all(drawing.graph.nodes[owner].holds_programs for owner in owners)
    for index, owner in enumerate(owners):
        assert f"n{owner} -> n{owner}_{index}_0 [style=dotted" in drawing.dot
        assert f"subgraph cluster_n{owner}_{index}_ {{" in drawing.dot


def test_special_characters() -> None:
    name = '<a & "$b$\\"> \x07'
    dot = ft.debug.draw(ft.trace(lambda x: np.sin(x))(1.0), names=[name]).dot
    assert "<b>&lt;a &amp; &quot;$b$\\&quot;&gt; \ufffd</b>" in dot
    assert 'tooltip="b: f64[] = sin(&lt;a &amp; &quot;$b$\\\\&quot;&gt; \ufffd)\\n' in dot


FAKE = """\
#!{python}
import sys
text = sys.stdin.buffer.read()
if b"broken" in text:
    sys.exit("syntax error in line 1")
sys.stdout.buffer.write(b"<?xml?><svg>" + " ".join(sys.argv[1:]).encode() + text + b"</svg>")
"""


@pytest.fixture
def graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program `dot` that repeats what it is given."""
    program = tmp_path / "bin" / "dot"
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


@pytest.mark.usefixtures("graphviz")
def test_pictures_are_drawn_by_graphviz(tmp_path: Path) -> None:
    drawing = ft.debug.draw(program_of("loop"), tmp_path / "a.SVG", backward=True)
    svg = f"<?xml?><svg>-Tsvg -Gdpi=72{drawing.dot}</svg>"
    assert (tmp_path / "a.SVG").read_text() == drawing.svg == svg
    assert b"-Tpng -Gdpi=108digraph" in drawing.save(tmp_path / "a.png", scale=1.5).read_bytes()
    assert b"-Tpdf -Gdpi=72digraph" in drawing.save(str(tmp_path / "a.pdf")).read_bytes()
    html = drawing._repr_html_()
    assert "<svg" in html
    assert "<?xml" not in html
    assert "background:#ffffff" in html
    with pytest.raises(RuntimeError, match=r"cannot draw this: syntax error in line 1\n  at .*test_draw\.py"):
        ft.debug.draw(program_of("loop"), tmp_path / "a.svg", names=["broken"])


def test_texts_need_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    drawing = ft.debug.draw(program_of("loop"), tmp_path / "a.dot")
    assert (tmp_path / "a.dot").read_text(encoding="utf-8") == drawing.dot == str(drawing)
    assert drawing.save(tmp_path / "a.GV").read_text(encoding="utf-8") == drawing.dot
    assert repr(drawing) == "<drawing of loop: 7 equations>"
    assert "install Graphviz" in drawing._repr_html_()
    assert "digraph &quot;loop&quot;" in drawing._repr_html_()
    for name in ("a.svg", "a.png", "a.pdf"):
        with pytest.raises(
            RuntimeError, match=f"a {name[1:]} file needs Graphviz.*apt install.*save as .dot.*\n  at .*test_draw"
        ):
            drawing.save(tmp_path / name)
    with pytest.raises(RuntimeError, match="needs Graphviz"):
        ft.debug.draw(program_of("loop"), tmp_path / "a.svg")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_the_text(drawing: Drawing) -> None:
    root = ElementTree.fromstring(drawing.svg)
    kinds = Counter(group.get("class") for group in root.iter("{http://www.w3.org/2000/svg}g"))
    assert kinds["node"] == len(drawing.graph.nodes)
    assert kinds["edge"] == len(drawing.graph.edges)
    text = "".join(root.itertext())
    assert all(eqn.primitive.name in text for eqn in drawing.program.eqns)


# What may be drawn


def test_other_objects_say_what_their_program_is() -> None:
    class Model:
        def __ftrans_program__(self) -> tuple[Program, list[int]]:
            return program_of("step"), [0]

    assert len(ft.debug.draw(Model()).program.eqns) == len(program_of("step").eqns)


def test_tensors_are_drawn_with_the_way_back_to_their_leaves() -> None:
    x = ft.autograd.tensor([1.0, 2.0], requires_grad=True)
    y = (np.tanh(x * np.array([3.0, 4.0])) ** 2).sum()
    program = ft.debug.draw(y, backward=True).program
    value, gradient = program(*[x.detach().numpy(), np.array([3.0, 4.0]), 1.0][: len(program.inputs)])
    y.backward()
    np.testing.assert_allclose(gradient, x.grad.numpy())
    np.testing.assert_allclose(value, y.item())


def test_errors() -> None:
    program = program_of("step")
    with pytest.raises(TypeError, match=r"draw\(ft\.trace\(step\)\(\*args\)\)"):
        ft.debug.draw(step)
    nameless = functools.wraps(step)(lambda: None)
    for name, shown, written in (("", "function", "f"), ("a\x1b\nb", r"a\\x1b\\nb", "f")):
        nameless.__name__ = name
        with pytest.raises(TypeError, match=rf"not {shown}; .* draw\(ft\.trace\({written}\)\(\*args\)\)"):
            ft.debug.draw(nameless)
    with pytest.raises(TypeError, match="not ndarray; give it a program"):
        ft.debug.draw(np.ones(3))
    with pytest.raises(ValueError, match=r"one of \.dot, \.gv, \.svg, \.png, \.pdf"):
        ft.debug.draw(program, "picture.gif")
    with pytest.raises(ValueError, match="4 names were given for the 3 inputs"):
        ft.debug.draw(program, names=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="inputs 0 to 2"):
        ft.debug.draw(program, backward=True, argnums=3)
    with pytest.raises(ValueError, match=r"input 0 of .* is i64\[\], which has no derivative"):
        ft.debug.draw(ft.trace(lambda n, x: n * x)(2, 1.0), backward=True, argnums=0)
    with pytest.raises(ValueError, match="no backward pass to draw"):
        ft.debug.draw(ft.trace(np.floor)(1.0), backward=True)
    with pytest.raises(TypeError, match="part is a slice"):
        ft.debug.draw(program, part=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="holds none of"):
        ft.debug.draw(program, part=slice(500, 600))


# Large programs


def long_program(count: int) -> Program:
    def f(x: Any, w: Any) -> Any:
        h = x
        for _ in range(count):
            h = np.tanh(w * h + x)
        return h

    return ft.trace(f)(np.ones(2), np.ones(2))


def test_large_programs() -> None:
    program = long_program(100)
    with pytest.raises(ValueError, match=r"has 300 equations.*part=slice\(0, 50\).*max_eqns=300"):
        ft.debug.draw(program, max_eqns=200)
    drawing = ft.debug.draw(program)
    assert len(drawing.graph.nodes) == 303
    # Both inputs are used a hundred times, and have lines to the first uses only.
    for number in (0, 1):
        assert sum(edge.source == number for edge in drawing.graph.edges) > 90
        assert len(re.findall(rf"n{number} -> ", drawing.dot)) == 20


def test_a_part_of_a_program() -> None:
    program = long_program(20)
    part = ft.debug.draw(program, part=slice(30, 36), max_eqns=20).program
    assert part.check().eqns == program.eqns[30:36]
    x, w = np.array([0.3, -0.2]), np.array([0.5, 0.7])
    h = np.array([0.1, 0.2])
    given = {program.inputs[0]: x, program.inputs[1]: w}
    (result,) = part(*(given.get(v, h) for v in part.inputs))
    np.testing.assert_allclose(result, np.tanh(w * np.tanh(w * h + x) + x), rtol=1e-14)
    assert ft.debug.draw(program, part=slice(30, 36), backward=True).graph.has_backward
