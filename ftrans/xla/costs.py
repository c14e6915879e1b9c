"""What a compiled program costs: floating-point operations and memory traffic, for each of the user's lines.

XLA's own analysis gives totals only.  So the operations are lowered under names that say for which line they are; XLA
keeps these names through all of its passes, and they are found again in the text of the optimised program, where an
operation inside a fused kernel still has its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..base.interrupts import uninterrupted
from ..base.source import Line
from ..core.program import Program
from .execute import about_to_run, lower, naming_lines

_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_ARRAY = re.compile(r"([a-z]\w*)\[([\d,]*)\]")
_NAME = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_LINE_NAME = re.compile(r'op_name="[^"]*\b(user-line-\d+)\b')
# The contracted axes of a product, as an attribute of XLA's own operation, or in the call of a library's.
_CONTRACTED = re.compile(r'lhs_contracting_dim(?:ension)?s(?:=\{|":\[)([\d,"]+)')

_BITS = {"pred": 8, "token": 0, "opaque": 0, "bf16": 16, "c64": 64, "c128": 128}
_INEXACT = re.compile(r"f\d|bf16|c64|c128")
# fmt: off
_ARITHMETIC = frozenset((
    "abs", "add", "atan2", "cbrt", "ceil", "clamp", "compare", "complex", "cosine", "divide", "erf", "exponential",
    "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic", "maximum", "minimum",
    "multiply", "negate", "power", "real", "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt", "select",
    "sign", "sine", "sqrt", "subtract", "tan", "tanh",
))
# What moves nothing, or is accounted for by what it runs.
_FREE = frozenset((
    "parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "while", "conditional", "call",
))
# fmt: on
_PARTIAL_READS = frozenset(("slice", "dynamic-slice", "gather"))


class Shape(NamedTuple):
    """A type of XLA: its arrays, as (element type, sizes)."""

    arrays: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def read(cls, text: str) -> Shape:
        return cls(tuple((t, tuple(int(n) for n in sizes.split(",") if n)) for t, sizes in _ARRAY.findall(text)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the first array."""
        return self.arrays[0][1] if self.arrays else ()

    @property
    def size(self) -> int:
        """Elements of the first array."""
        return math.prod(self.sizes)

    @property
    def weight(self) -> int:
        """Operations that one operation on an element counts for: 0 for integers, 4 for complex numbers."""
        element = self.arrays[0][0] if self.arrays else ""
        return 4 if element in ("c64", "c128") else 1 if _INEXACT.match(element) else 0

    @property
    def nbytes(self) -> float:
        """Memory that all arrays take."""
        return sum(math.prod(sizes) * _bits(element) / 8 for element, sizes in self.arrays)


def _bits(element: str) -> int:
    found = _BITS.get(element)
    if found is None:
        digits = re.match(r"[a-z]+(\d+)", element)
        found = _BITS[element] = int(digits[1]) if digits else 8
    return found


class Instruction(NamedTuple):
    """One line of the text of a compiled program."""

    name: str
    shape: Shape
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    is_root: bool


class Costs(NamedTuple):
    """What a compiled program costs.

    Attributes:
        totals: XLA's own cost analysis, which counts the body of each loop once.
        flops: floating-point operations by line; None stands for what XLA added by itself.
        nbytes: bytes read and written by line.
    """

    totals: Mapping[str, float]
    flops: dict[Line | None, float]
    nbytes: dict[Line | None, float]


@uninterrupted
def costs(program: Program) -> Costs:
    """Compile `program` and read what it costs from the result.  Loops count as often as XLA knows them to run."""
    import jax

    about_to_run()
    with jax.enable_x64(True), naming_lines() as names:
        types = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in program.in_types]
        compiled = jax.jit(lambda *args: lower(program, args)).lower(*types).compile()
    module = _Module(compiled.as_text() or "", {name: line for line, name in names.items()})
    module.add(module.entry, 1, None, False)
    return Costs(compiled.cost_analysis() or {}, module.flops, module.nbytes)


class _Module:
    """The text of a compiled program, taken apart; `add` sums up what its computations cost."""

    def __init__(self, text: str, lines: Mapping[str, Line]) -> None:
        self.lines = lines
        self.entry = ""
        self.computations: dict[str, dict[str, Instruction]] = {}
        self.flops: dict[Line | None, float] = {}
        self.nbytes: dict[Line | None, float] = {}
        current: dict[str, Instruction] = {}
        for row in text.splitlines():
            header = _COMPUTATION.match(row)
            if header is not None:
                current = self.computations[header[2]] = {}
                self.entry = header[2] if header[1] else self.entry
                continue
            match = _INSTRUCTION.match(row)
            if match is not None:
                current[match[2]] = _instruction(match[2], match[3], match[1] is not None)

    def add(self, computation: str, times: float, line: Line | None, fused: bool) -> None:
        """Count a computation that runs so many times, for `line` where it does not say for which itself."""
        scope = self.computations.get(computation, {})
        for instruction in scope.values():
            name = _LINE_NAME.search(instruction.attributes)
            mine = self.lines[name[1]] if name is not None else line
            flops = times * _flops(instruction, scope)
            if flops:
                self.flops[mine] = self.flops.get(mine, 0) + flops
            if not fused and instruction.opcode not in _FREE:
                self.nbytes[mine] = self.nbytes.get(mine, 0) + times * self._traffic(instruction, scope)
            trips = _TRIPS.search(instruction.attributes) if instruction.opcode == "while" else None
            for called, is_fused in _computations_run(instruction):
                self.add(called, times * (int(trips[1]) if trips else 1), mine, fused or is_fused)

    def _traffic(self, instruction: Instruction, scope: Mapping[str, Instruction]) -> float:
        """Bytes that an operation reads and writes; of what it only takes a part of, the part."""
        inner = next((self.computations.get(c, {}) for c, fused in _computations_run(instruction) if fused), None)
        if inner is None:
            return _traffic_alone(instruction, scope)
        root = next((i for i in inner.values() if i.is_root), None)
        while root is not None and root.opcode in ("bitcast", "copy", "convert") and root.operands:
            root = inner.get(root.operands[0])
        updates = root is not None and root.opcode == "dynamic-update-slice"
        written = inner[root.operands[1]].shape.nbytes if updates and root is not None else instruction.shape.nbytes
        return written + sum(_read(p, inner) for p in inner.values() if p.opcode == "parameter")


def _instruction(name: str, text: str, is_root: bool) -> Instruction:
    end = _closing(text, 0) if text.startswith("(") else text.find(" ")
    opcode = _OPCODE.match(text, end)
    if opcode is None:
        return Instruction(name, Shape.read(text), "", (), "", is_root)
    close = _closing(text, opcode.end() - 1)
    operands = tuple(_NAME.findall(text[opcode.end() : close]))
    return Instruction(name, Shape.read(text[:end]), opcode[1], operands, text[close:], is_root)


def _closing(text: str, start: int) -> int:
    """The place behind the parenthesis that closes the one at `start`."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.end()
    return len(text)


def _computations_run(instruction: Instruction) -> Iterator[tuple[str, bool]]:
    """The computations that an operation runs as parts of the program, and whether they are one kernel."""
    if instruction.opcode in ("while", "conditional", "call", "fusion", "async-start"):
        branches = _BRANCHES.search(instruction.attributes)
        called = [*_CALLED.findall(instruction.attributes), *(_NAME.findall(branches[1]) if branches else ())]
        yield from ((c, instruction.opcode == "fusion") for c in called)


def _flops(instruction: Instruction, scope: Mapping[str, Instruction]) -> float:
    opcode, shape = instruction.opcode, instruction.shape
    if opcode in _ARITHMETIC:
        operand = scope.get(instruction.operands[-1]) if instruction.operands else None
        return shape.size * max(shape.weight, operand.shape.weight if operand is not None else 0)
    if not shape.weight or not instruction.operands or instruction.operands[0] not in scope:
        return 0.0
    first = scope[instruction.operands[0]].shape
    if opcode in ("reduce", "scatter"):
        changed = scope[instruction.operands[-1]].shape if opcode == "scatter" else first
        return changed.size * shape.weight
    if opcode == "reduce-window":
        window = re.search(r"size=([\dx]+)", instruction.attributes)
        return shape.size * shape.weight * math.prod(int(n) for n in (window[1] if window else "1").split("x"))
    contracted = _CONTRACTED.search(instruction.attributes)
    if contracted is not None:
        axes = [int(n) for n in re.findall(r"\d+", contracted[1])]
        return 2.0 * shape.size * shape.weight * math.prod(first.sizes[i] for i in axes)
    return 0.0


def _traffic_alone(instruction: Instruction, scope: Mapping[str, Instruction]) -> float:
    operands = [scope[name].shape.nbytes for name in instruction.operands if name in scope]
    written = instruction.shape.nbytes
    if instruction.opcode in _PARTIAL_READS:
        return 2 * written + sum(operands[1:])
    if instruction.opcode == "dynamic-update-slice":
        return 2 * sum(operands[1:2])
    return written + sum(operands)


def _read(parameter: Instruction, scope: Mapping[str, Instruction]) -> float:
    """Bytes of a parameter that a kernel reads."""
    users: Sequence[Instruction] = [i for i in scope.values() if parameter.name in i.operands]
    total: float = 0
    for user in users:
        is_first = user.operands[0] == parameter.name
        if is_first and user.opcode in _PARTIAL_READS:
            total += user.shape.nbytes
        elif not (is_first and user.opcode == "dynamic-update-slice"):
            return parameter.shape.nbytes
    return min(total, parameter.shape.nbytes)
