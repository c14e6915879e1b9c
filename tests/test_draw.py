"""Pictures of programs: what is on them, that it is where it belongs, and the files that they are written to."""

from __future__ import annotations

import functools
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.core.program import Program, Var
from ftrans.debug.draw import Drawing
from ftrans.debug.layout import LEFT, RIGHT, Link, Rect, layout
from ftrans.debug.shapes import Box, Curve, Text

SVG = "{http://www.w3.org/2000/svg}"
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

    assert "in encoder" in ft.debug.draw(ft.trace(f)(1.0)).svg


def test_subprograms() -> None:
    program = program_of("loop")
    plain, expanded = ft.debug.draw(program), ft.debug.draw(program, expand=True)
    assert not plain.graph.subgraphs
    assert [g.program for g in expanded.graph.subgraphs] == list(program.subprograms())
    holders = [n for n in plain.graph.nodes if n.holds_programs]
    assert [n.title[1] for n in holders] == ["scan", "cond"]
    assert any("5 equations" in line for line in holders[0].lines)
    assert expanded.picture.height > plain.picture.height
    assert expanded.svg.count("in c, d = scan(...)") == 1
    check_places(expanded)


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
    assert "forward" in drawing.svg
    assert "kept for the way back" in drawing.svg
    both = ft.debug.draw(program, backward=True, argnums=[0, -1]).graph
    assert sum(n.kind == "result" and n.part == "backward" for n in both.nodes) == 2


# Where it is


def texts_of(drawing: Drawing) -> list[Text]:
    shapes = drawing.picture.shapes
    return [s for s in shapes if isinstance(s, Text)] + [t for s in shapes if isinstance(s, Box) for t in s.texts]


def left_of(text: Text) -> float:
    return text.x - text.width / 2 if text.centred else text.x


def points_on(points: Any) -> list[tuple[float, float]]:
    """Points along a path of cubic Bezier curves, by de Casteljau's formula."""
    found = []
    for i in range(0, len(points) - 1, 3):
        a, b, c, d = (np.asarray(p) for p in points[i : i + 4])
        for t in np.linspace(0, 1, 12):
            p = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
            found.append((float(p[0]), float(p[1])))
    return found


def check_places(drawing: Drawing) -> None:
    """No two boxes overlap, no line runs through a box, and all is on the page, text in its box."""
    picture = drawing.picture
    boxes = [s for s in picture.shapes if isinstance(s, Box) and s.role != "panel"]
    for i, a in enumerate(boxes):
        assert a.x >= 0
        assert a.y >= 0
        assert a.x + a.width <= picture.width
        assert a.y + a.height <= picture.height
        for b in boxes[:i]:
            apart = a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
            assert apart, (a.tooltip, b.tooltip)
        for text in a.texts:
            assert left_of(text) >= a.x + 1
            assert left_of(text) + text.width <= a.x + a.width - 1
            assert a.y < text.y - 0.7 * text.size
            assert text.y < a.y + a.height
    for text in texts_of(drawing):
        assert left_of(text) >= 0
        assert left_of(text) + text.width <= picture.width
        assert text.size <= text.y <= picture.height
    corners = np.asarray([(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes])
    for curve in picture.shapes:
        if isinstance(curve, Curve):
            for x, y in points_on(curve.points):
                inside = (corners[:, 0] + 0.1 < x) & (x < corners[:, 2] - 0.1)
                inside &= (corners[:, 1] + 0.1 < y) & (y < corners[:, 3] - 0.1)
                assert not inside.any()


def test_places(drawing: Drawing) -> None:
    check_places(drawing)


def on_side(rect: Rect, point: tuple[float, float], bottom: bool) -> bool:
    y = rect.y + rect.height if bottom else rect.y
    return rect.x <= point[0] <= rect.x + rect.width and abs(point[1] - y) < 1e-6


def test_routes_lead_from_source_to_target(drawing: Drawing) -> None:
    graph = drawing.graph
    columns = [LEFT if n.part == "forward" else RIGHT for n in graph.nodes]
    links = [Link(e.source, e.target, e.var) for e in graph.edges]
    sizes = [(80.0 + 10 * (i % 4), 30.0 - 5 * (i % 3)) for i in range(len(columns))]
    found = layout(sizes, links, columns)
    earlier: dict[Any, list[tuple[float, float]]] = {}
    for link, route in zip(links, found.routes, strict=True):
        rises = columns[link.source] == RIGHT
        assert on_side(found.boxes[link.target], route[-1], bottom=rises)
        begins_at_box = rises != (route[0][1] > found.boxes[link.source].y) and on_side(
            found.boxes[link.source], route[0], bottom=not rises
        )
        line = earlier.setdefault((link.net, columns[link.target]), [])
        assert begins_at_box or joins(line, route[0]) or joins(earlier[link.net, LEFT], route[0])
        line += points_on(route)
        if columns[link.source] == columns[link.target]:
            up, down = (link.target, link.source) if rises else (link.source, link.target)
            assert found.boxes[up].y + found.boxes[up].height < found.boxes[down].y
    if RIGHT in found.columns:
        assert found.columns[LEFT][1] < found.columns[RIGHT][0]


def joins(line: list[tuple[float, float]], point: tuple[float, float]) -> bool:
    """Whether a line, given by points on it, passes a point where it runs upright, or has it."""
    pairs = pairwise(line)
    return point in line or any(
        abs(a[0] - point[0]) < 0.5 and abs(b[0] - point[0]) < 0.5 and min(a[1], b[1]) <= point[1] <= max(a[1], b[1])
        for a, b in pairs
    )


def test_a_long_chain_is_straight() -> None:
    count = 30
    found = layout([(50.0, 20.0)] * count, [Link(i, i + 1, i) for i in range(count - 1)], [LEFT] * count)
    assert max(b.x for b in found.boxes) < 1e-6
    assert all(a.y < b.y for a, b in pairwise(found.boxes))


def test_crossed_pairs_are_uncrossed() -> None:
    # The two lines of K(1,1) + K(1,1) cross in the order in which they are given.
    found = layout([(50.0, 20.0)] * 4, [Link(0, 3, 0), Link(1, 2, 1)], [LEFT] * 4)
    assert (found.boxes[0].x < found.boxes[1].x) == (found.boxes[3].x < found.boxes[2].x)
    assert layout([], [], []).boxes == []


# Files and notebooks


def test_svg_is_xml(drawing: Drawing) -> None:
    root = ElementTree.fromstring(drawing.svg)
    assert root.tag == f"{SVG}svg"
    groups = Counter(g.get("class", "").split()[0] for g in root.iter(f"{SVG}g"))
    assert groups["equation"] + groups["plumbing"] == len(drawing.program.eqns)
    assert groups["input"] == len(drawing.program.inputs)
    assert groups["edge"] == len(drawing.graph.edges)
    text = "".join(root.itertext())
    for eqn in drawing.program.eqns:
        assert eqn.primitive.name in text


def test_special_characters() -> None:
    drawing = ft.debug.draw(ft.trace(lambda x: np.sin(x))(1.0), names=['<a & "$b$">'])
    assert '<a & "$b$">' in "".join(ElementTree.fromstring(drawing.svg).itertext())


def test_notebooks_show_it_on_white() -> None:
    html = ft.debug.draw(program_of("loop"))._repr_html_()
    assert "<svg" in html
    assert "background:#ffffff" in html
    assert repr(ft.debug.draw(program_of("loop"))) == "<drawing of loop: 7 equations>"


def test_files(tmp_path: Path) -> None:
    program = program_of("loop")
    drawing = ft.debug.draw(program, tmp_path / "a.svg", backward=True)
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == drawing.svg
    png = drawing.save(tmp_path / "a.png", scale=1.0).read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    assert abs(width - drawing.picture.width) <= 1
    assert abs(height - drawing.picture.height) <= 1
    assert drawing.save(str(tmp_path / "a.pdf")).read_bytes()[:5] == b"%PDF-"


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    drawing = ft.debug.draw(program_of("loop"), tmp_path / "a.svg")
    with pytest.raises(ImportError, match=r"pip install 'ftrans\[plot\]'"):
        drawing.save(tmp_path / "a.png")


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
    with pytest.raises(ValueError, match=r"one of \.svg, \.png, \.pdf"):
        ft.debug.draw(program, "picture.gif")
    with pytest.raises(ValueError, match="4 names were given for the 3 inputs"):
        ft.debug.draw(program, names=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="inputs 0 to 2"):
        ft.debug.draw(program, backward=True, argnums=3)
    with pytest.raises(ValueError, match=r"input 0 of .* is i64\[\], of which there are no derivatives"):
        ft.debug.draw(ft.trace(lambda n, x: n * x)(2, 1.0), backward=True, argnums=0)
    with pytest.raises(ValueError, match="no way back to draw"):
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
    # Lines that lead to many equations are drawn once as far as they run together: the picture grows linearly.
    assert len(drawing.svg) < 2.3 * len(ft.debug.draw(long_program(50)).svg)


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


def test_suffixes_may_be_capital_letters(tmp_path: Path) -> None:
    program = ft.trace(np.sin)(0.5)
    assert ft.debug.draw(program).save(tmp_path / "a.SVG").read_text().startswith("<svg")
