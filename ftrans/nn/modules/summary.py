"""nn.summary: inputs, outputs and costs of the modules of a model, from one abstract trace of its forward code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...api.call import trace_flat
from ...base import html, tree
from ...base.source import at_line, user_line
from ...core.program import Program
from ...core.trace import NoWitness, Tracer, current_builder
from ...core.types import ArrayType, type_of
from ...debug import report
from ...run.costs import flops, program_flops
from ...transforms.differentiate import pruned, pullback
from ...xla import bytes_on_each
from ..cells.array_cell import ArrayCell
from ..cells.kinds import Parameter
from ..devices.placing import planned, require_mesh
from .bare import capturing
from .calls import call_filled
from .graph import Graph, graph_of
from .module import Module
from .roots import require_module


@dataclass
class ModuleSummary:
    """One module of a model.

    Attributes:
        path: its path; empty for the model itself.
        kind: name of its class.
        depth: number of modules around it.
        outputs: types of the arrays that its first call returned; None if it was not called.
        calls: number of calls.
        parameters: number of elements of its parameters and those of modules inside, each counted once.
        trained: the same for parameters with `requires_grad`.
        parameter_bytes: bytes of its parameters.
        device_bytes: bytes of its parameters, buffers and streams of random numbers on each device of a mesh; None for
            a model on no mesh.
        flops: floating-point operations of all its calls.  Of layers that run in one loop (`nn.scan`), the first has
            those of a single step, and the modules around it those of all steps.
        activation_bytes: bytes of the arrays that its calls returned.
    """

    path: str
    kind: str
    depth: int
    outputs: list[ArrayType] | None = None
    calls: int = 0
    parameters: int = 0
    trained: int = 0
    parameter_bytes: int = 0
    device_bytes: int | None = None
    flops: float = 0.0
    activation_bytes: int = 0


@dataclass(repr=False)
class Summary:
    """The modules of a model, and the cost of calling it.  Printing it shows a table.

    Attributes:
        modules: the modules, down to the requested depth.
        total: the model itself; tied parameters count once.
        activation_bytes: bytes of the results of the innermost modules.
        buffer_bytes: bytes of buffers and streams of random numbers.
    """

    modules: list[ModuleSummary]
    total: ModuleSummary
    activation_bytes: int
    buffer_bytes: int
    _program: Program = field(repr=False)
    _trained: tuple[bool, ...] = field(repr=False)

    @property
    def kept_bytes(self) -> int:
        """Bytes that reverse mode keeps for a gradient with respect to the parameters, besides the cells."""
        parts = pruned(pullback(self._program, self._trained))
        kept = parts.values.outputs[len(self._program.outputs) :]
        return sum(x.type.nbytes for x in dict.fromkeys(kept) if x not in parts.values.inputs)

    def __getitem__(self, path: str) -> ModuleSummary:
        """The row of a module."""
        for row in self.modules:
            if row.path == path:
                return row
        raise KeyError(
            f"the summary has no module {path!r}; it has {', '.join(r.path for r in self.modules if r.path)}"
        )

    def __repr__(self) -> str:
        return report.text_table(*self._table())

    def _repr_html_(self) -> str:
        return html.page(report.html_table(*self._table()))

    def _table(self) -> tuple[Any, Any, Any, Any]:
        rows = {id(m): report.Row(_label(m)) for m in self.modules}
        of_row = {id(rows[id(m)]): m for m in self.modules}
        columns: list[report.Column] = [
            ("output", lambda r: _shapes(of_row[id(r)])),
            ("parameters", lambda r: f"{of_row[id(r)].parameters:,}"),
            ("trained", lambda r: f"{of_row[id(r)].trained:,}"),
            ("FLOPs", lambda r: report.amount(of_row[id(r)].flops)),
            ("parameter bytes", lambda r: report.amount(of_row[id(r)].parameter_bytes, "B")),
            ("output bytes", lambda r: report.amount(of_row[id(r)].activation_bytes, "B")),
        ]
        total = self.total
        if total.device_bytes is not None:
            columns.append(("bytes per device", lambda r: report.amount(of_row[id(r)].device_bytes or 0, "B")))
        notes = [
            f"parameters: {total.parameters:,}, of which {total.trained:,} are trained",
            f"bytes: {report.amount(total.parameter_bytes, 'B')} of parameters, "
            f"{report.amount(self.buffer_bytes, 'B')} of buffers, "
            f"{report.amount(self.activation_bytes, 'B')} of what the innermost modules return",
            f"one call: {report.amount(total.flops)} FLOPs",
        ]
        if total.device_bytes is not None:
            notes.append(f"each device of the mesh holds {report.amount(total.device_bytes, 'B')} of the arrays")
        return "module", columns, list(rows.values()), notes


def _label(m: ModuleSummary) -> str:
    name = f"{m.path.rsplit('.', 1)[-1]}: {m.kind}" if m.path else m.kind
    return "  " * m.depth + name + (f" (x{m.calls})" if m.calls > 1 else "")


def _shapes(m: ModuleSummary) -> str:
    return "" if m.outputs is None else ", ".join(map(str, m.outputs)) or "none"


def summary(
    model: Module, *inputs: Any, depth: int | None = None, mesh: Any = None, rules: Any = None, **kwargs: Any
) -> Summary:
    """A table of the modules of a model: outputs, parameters, operations and bytes.

    The forward code is traced without computing anything; buffers and streams of random numbers do not change.

    Args:
        model: the model.
        inputs: arguments of the model: arrays, or objects with a shape and a dtype in place of arrays.
        depth: number of levels of modules to show; all by default.
        mesh: a mesh of devices: also show how many bytes each of them would hold, without moving anything.  Of a model
            that `nn.shard` has placed they are shown without it.
        rules: how the model would be divided, as for `nn.shard`.
        kwargs: keyword arguments of the model.

    Returns:
        A `Summary`, which prints as a table.  `summary["encoder.0"]` is the row of a module, `total` that of the model.

    Raises:
        TypeError: `model` is not a module, or `mesh` not a mesh.
        ValueError: the model cannot be divided by the rules.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> found = nn.summary(model, np.ones((2, 4), np.float32))
        >>> found.total.parameters, found["0"].outputs
        (49, [f32[2,8]])
        >>> found["0"].flops  # 2 * 2 * 4 * 8 for the product, 2 * 8 for the bias
        144.0
    """
    require_module(model, "nn.summary takes")
    graph = graph_of(model)
    placements = _placements(graph, mesh, rules)
    rows = {id(module): _row(path, module, graph.modules, placements) for path, module in graph.modules.items()}
    try:
        program, innermost = _traced(model, inputs, kwargs, rows)
    except Exception as error:
        for x in inputs:
            if isinstance(x, tuple) and x and all(isinstance(n, int) for n in x):
                error.add_note(f"  summary takes arrays, not their shapes: np.zeros({x}, np.float32) in place of {x}")
        raise
    total = rows[id(model)]
    total.flops = program_flops(program)
    trained = set(graph.trained)
    return Summary(
        [row for row in rows.values() if depth is None or row.depth <= depth],
        total,
        innermost,
        sum(c.type.nbytes for c in graph.cells if not isinstance(c, Parameter)),
        program,
        tuple([i in trained for i in range(len(program.inputs))]),
    )


def _placements(graph: Graph, mesh: Any, rules: Any) -> dict[int, Any]:
    """Where cells are on a mesh of devices, or would be, by the identity of the cell; empty if they are on none."""
    if mesh is None:
        if rules is not None:
            raise ValueError(f"rules divide a model over a mesh: write mesh=, too{at_line(user_line())}")
        found = [cell.sharding for cell in graph.cells]
    else:
        found = planned(graph, require_mesh(mesh, "nn.summary"), rules)
    return {id(cell): where for cell, where in zip(graph.cells, found, strict=True) if where is not None}


def _row(path: str, module: Module, modules: dict[str, Module], placements: dict[int, Any]) -> ModuleSummary:
    parts = path.split(".") if path else []
    above = [".".join(parts[:i]) for i in range(len(parts))]
    parameters = list(module.parameters())
    return ModuleSummary(
        path,
        type(module).__name__,
        sum(p in modules for p in above),
        parameters=sum(p.size for p in parameters),
        trained=sum(p.size for p in parameters if p.requires_grad),
        parameter_bytes=sum(p.type.nbytes for p in parameters),
        device_bytes=sum(_bytes(cell, placements) for _, cell in module.named_cells()) if placements else None,
    )


def _bytes(cell: ArrayCell, placements: dict[int, Any]) -> int:
    """The bytes of a cell on each device of the mesh."""
    where = placements.get(id(cell))
    return cell.type.nbytes if where is None else bytes_on_each(where, cell.type)


def _traced(
    model: Module, inputs: tuple[Any, ...], kwargs: dict[str, Any], rows: dict[int, ModuleSummary]
) -> tuple[Program, int]:
    """The program of a call, whose figures are entered in the rows, and the bytes that innermost modules return."""
    graph = graph_of(model)
    leaves, structure = tree.flatten((inputs, kwargs))
    places = [i for i, x in enumerate(leaves) if hasattr(x, "shape") and hasattr(x, "dtype")]
    values = [*(cell.array for cell in graph.cells), *(leaves[i] for i in places)]
    innermost = 0
    # For each module that runs, whether it has run another one.
    has_called: list[bool] = []

    def around(module: Module, call: Callable[[], Any]) -> Any:
        nonlocal innermost
        builder = current_builder()
        assert builder is not None
        start = len(builder.tape.eqns())
        if has_called:
            has_called[-1] = True
        has_called.append(False)
        try:
            out = call()
        finally:
            is_innermost = not has_called.pop()
        types = [type_of(x) for x in tree.flatten(out)[0] if isinstance(x, Tracer) or hasattr(x, "dtype")]
        nbytes = sum(t.nbytes for t in types)
        innermost += nbytes if is_innermost else 0
        row = rows.get(id(module))
        if row is not None:
            row.outputs = types if row.outputs is None else row.outputs
            row.calls += 1
            row.flops += sum(map(flops, builder.tape.eqns()[start:]))
            row.activation_bytes += nbytes
        return out

    def call(tracers: list[Tracer]) -> Any:
        given = list(leaves)
        for i, x in zip(places, tracers[len(graph.cells) :], strict=True):
            given[i] = x
        new_inputs, new_kwargs = tree.unflatten(structure, given)

        def run() -> Any:
            # The context is that of this call alone.
            capturing.set(around)
            return model(*new_inputs, **new_kwargs)

        return call_filled(graph, dict(enumerate(tracers[: len(graph.cells)])), run)[0]

    types = [type_of(x) for x in values]
    witnesses = [x if hasattr(x, "__array__") or isinstance(x, Tracer) else _NO_VALUE for x in values]
    traced, _ = trace_flat(model, types, call, witnesses, shared=False, rolls=False)
    return traced.program, innermost


_NO_VALUE = NoWitness("summary was given a shape and a dtype in place of an array")
