"""Programs as text in JSON, which can be sent and kept; reading one executes no code of others."""

from __future__ import annotations

import inspect
import json
from typing import Any

from ..api.call import name_of
from ..base.source import at_line, user_line
from ..control.rules.black_box import Code
from ..control.rules.jax_code import JaxCode
from ..core.primitive import Primitive
from ..core.program import Eqn, Program
from .reader import Reader
from .record import VERSION, Writer

_FORMAT = "ftrans program"


def to_json(program: Program) -> str:
    """See `Storable.to_json`."""
    writer = Writer(_refused)
    writer.program(program)
    return json.dumps({"format": _FORMAT, "version": VERSION, **writer.tables}, separators=(",", ":"))


def from_json(text: Any) -> Program:
    """See `Storable.from_json`."""
    if not isinstance(text, str):
        raise TypeError(
            f"from_json takes the text that to_json has returned, not {type(text).__name__}{at_line(user_line())}"
        )
    try:
        return _read(text)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ValueError(f"this text is no program of ftrans: {said}{at_line(user_line())}") from None


def _read(text: str) -> Program:
    tables = json.loads(text)
    if not isinstance(tables, dict) or tables.get("format") != _FORMAT:
        raise ValueError(f'it has no entry "format": "{_FORMAT}"; it has to be the text that to_json returned')
    version = tables.get("version")
    if version != VERSION:
        raise ValueError(
            f"it has version {version!r:.100}, and this version of ftrans reads version {VERSION}; write it again with "
            f"this version, or read it with the one that wrote it"
        )
    return Reader(tables).programs[-1]


def _refused(value: Any, name: str, eqn: Eqn) -> Any:
    """Raise for what text cannot hold."""
    if isinstance(value, Primitive):
        what = f"the primitive {value.name!r}, which is not defined in ftrans"
        advice = "Programs of its parts can be written"
    elif isinstance(value, Code | JaxCode) or inspect.isroutine(value):
        what = f"a call of the Python function {value.name if isinstance(value, Code | JaxCode) else name_of(value)}"
        advice = "Trace what comes before and after it, and write two programs"
    else:
        what = f"the parameter {name}={value!r:.100} of {eqn.primitive}, a Python object of {type(value).__name__}"
        advice = "Leave it out, or pickle the program"
    raise TypeError(f"a program with {what}, cannot be written as text. {advice}{at_line(eqn.line)}")
