"""Program -> text that a Python programmer can read, each equation beside the user's line that it came from."""

from __future__ import annotations

import keyword
import unicodedata
from typing import Any

import numpy as np

from .program import Atom, Const, Eqn, Program, Var

_COMMENT_COLUMN = 52


class Names:
    """Gives letters to variables in the order in which they appear, skipping Python's keywords and `np`."""

    _TAKEN = frozenset((*keyword.kwlist, "np"))

    def __init__(self) -> None:
        self._names: dict[Var, str] = {}
        self._count = 0

    def fresh(self) -> str:
        """The next unused name: a, b, ..., z, aa, ab, ..."""
        while True:
            n, name = self._count, ""
            self._count += 1
            while n >= 0:
                name = chr(ord("a") + n % 26) + name
                n = n // 26 - 1
            if name not in self._TAKEN:
                return name

    def __getitem__(self, var: Var) -> str:
        name = self._names.get(var)
        if name is None:
            name = self._names[var] = self.fresh()
        return name

    def atom(self, atom: Atom) -> str:
        """A variable's name, a number, or a short form of an array constant."""
        return self[atom] if isinstance(atom, Var) else format_const(atom)


def identifier(name: str) -> str:
    """A name that can be defined in Python's source, as close as possible to one that may be any text."""
    # Python reads names in this normal form.
    text = "".join(c if f"_{c}".isidentifier() else "_" for c in unicodedata.normalize("NFKC", name))
    return text if text.isidentifier() and not keyword.iskeyword(text) else f"program_{text}"


def printable(name: str) -> str:
    """A name on one line, with escapes such as `\\n` for characters that cannot be seen or written to a file."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def format_const(const: Const) -> str:
    """A constant as it is printed: a number, or values of a small array, or its type."""
    value = const.value
    if const.is_splat or value.ndim == 0:
        item = value.item()
        return (
            f"{item:g}" if isinstance(item, float) and float(f"{item:g}") == item and "e" in f"{item:g}" else repr(item)
        )
    if value.size <= 6:
        return np.array2string(np.asarray(value), separator=", ", precision=6).replace("\n", "")
    return f"<constant {const.type}>"


def format_param(value: Any) -> str:
    """A parameter of an equation as it is printed; sub-programs are printed apart."""
    if isinstance(value, Program):
        return value.name
    if isinstance(value, tuple) and value and all(isinstance(v, Program) for v in value):
        return "(" + ", ".join(v.name for v in value) + ")"
    if isinstance(value, np.dtype):
        return str(value.name)
    if callable(value):
        return printable(str(getattr(value, "__name__", type(value).__name__)))
    return printable(str(value))


def format_eqn(eqn: Eqn, names: Names | None = None) -> str:
    """One equation as a line of text, without its comment."""
    names = names or Names()
    operands = [names.atom(a) for a in eqn.operands]
    params = [f"{k}={format_param(v)}" for k, v in eqn.params.items()]
    left = ", ".join(f"{names[v]}: {v.type}" for v in eqn.outputs)
    return f"{left} = {eqn.primitive.name}({', '.join(operands + params)})"


def format_program(program: Program, indent: str = "") -> str:
    """A program as text, with its sub-programs indented below the equations that hold them."""
    names = Names()
    inputs = ", ".join(f"{names[v]}: {v.type}" for v in program.inputs)
    outputs = ", ".join(str(t) for t in program.out_types)
    if len(program.outputs) != 1:
        outputs = f"({outputs})"
    lines = [f"{indent}{program.name}({inputs}) -> {outputs}:"]
    for eqn in program.eqns:
        text = f"{indent}  {format_eqn(eqn, names)}"
        lines.append(f"{text:<{_COMMENT_COLUMN}}  # {eqn.line}" if eqn.line is not None else text)
        for value in eqn.params.values():
            inner = value if isinstance(value, tuple) else (value,)
            lines += [format_program(p, indent + "      ") for p in inner if isinstance(p, Program)]
    result = ", ".join(names.atom(a) for a in program.outputs)
    lines.append(f"{indent}  return {result}")
    return "\n".join(lines)
