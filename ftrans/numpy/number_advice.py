"""What to write in place of code that asks a traced value for its number: the one cause at hand, and one way out.

Compiled code that calls `float` leaves no frame of its own.  What it is stands in the line that runs: an assignment to
an element, or a call, whose function is looked up by its name in the frame.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import sys
import textwrap
from itertools import takewhile
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from ..base.cell import Eager
from ..base.foreign import assigns_element, is_within_vectorize
from ..base.source import Line, of_package
from ..core.trace import Tracer
from .dispatch import ENTERED_LATER, TABLE

_MAKERS = {"empty", "full", "ones", "zeros"}
_ASARRAY = {"array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "require"}
# What to write for functions of `math` and `cmath` that have another name elsewhere, or mean something else there.
_OF_MATH = {
    "acos": "np.arccos", "acosh": "np.arccosh", "asin": "np.arcsin", "asinh": "np.arcsinh", "atan": "np.arctan",
    "atanh": "np.arctanh", "atan2": "np.arctan2", "erf": "ftrans.scipy.special.erf", "phase": "np.angle",
    "erfc": "ftrans.scipy.special.erfc", "fsum": "ftrans.numpy.sum", "gamma": "ftrans.scipy.special.gamma",
    "lgamma": "ftrans.scipy.special.gammaln", "pow": "np.power", "prod": "ftrans.numpy.prod", "ulp": "np.spacing",
}  # fmt: skip
_NOT_OF_NUMPY = {"remainder", "isclose", "hypot"}
_KEEP = "keep the traced value as it is"
_NUMBER_ITSELF = (
    "return the traced value from the function and use the number in the result, or hand it over by ftrans.tap"
)


def advice(line: Line | None) -> tuple[str, str]:
    """What asks for a number in the frame that runs, and what to write instead.

    Args:
        line: the user's line.
    """
    frame = _frame_of(line)
    if line is None or frame is None:
        return "", _KEEP
    package = _installed_package(frame)
    if package is not None:
        return f"The package {package} asks for it", f'before, call ftrans.patch("{package}"), so that it need not'
    if is_within_vectorize(sys._getframe(1)):
        return "np.vectorize with otypes= makes numbers of results", "write ftrans.numpy.vectorize"
    if _is_text_with_percent(line.expression):
        return "% of a text asks for it", 'write an f-string, as in print(f"{x:.3f}")'
    call = _call(line.expression)
    if call is None:
        return "", f"{_KEEP}, or {_NUMBER_ITSELF}"
    if isinstance(call.func, ast.Call) and call.func.args:
        # What `ft.grad(math.sin)(1.0)` calls in the end is `math.sin`.
        call = ast.Call(call.func.args[0], call.args, call.keywords)
    name, function = ast.unparse(call.func), _looked_up(call.func, frame)
    if getattr(function, "__module__", None) in ("math", "cmath"):
        # It may have been imported by another name.
        name = f"{function.__module__}.{function.__name__}"
    return f"{name} asks for it", _instead(name, function, call, frame)


def called(frame: FrameType) -> Any:
    """The object that the expression calls at which a frame is; None if it is not found by its name."""
    call = _call(Line(frame.f_code, frame.f_lasti).expression)
    if call is None:
        return None
    owner = _looked_up(call.func.value, frame) if isinstance(call.func, ast.Attribute) else None
    return (
        inspect.getattr_static(owner, call.func.attr, None)
        if owner is not None and isinstance(call.func, ast.Attribute)
        else _looked_up(call.func, frame)
    )


def advice_to_assign(line: Line | None) -> str | None:
    """What is wrong with an assignment to an element of a plain array, and what to write; None if none runs.

    Args:
        line: the user's line.
    """
    frame = _frame_of(line)
    if line is None or frame is None or _installed_package(frame) is not None or not assigns_element(frame):
        return None
    target = _parsed(line.expression)
    owner = target.value if isinstance(target, ast.Subscript) else None
    name = "the target" if owner is None else ast.unparse(owner)
    is_tensor = owner is not None and isinstance(_looked_up(owner, frame), Eager)
    made = _made_at(owner.id, line, frame) if isinstance(owner, ast.Name) and not is_tensor else None
    if made is None:
        kind = "a tensor" if is_tensor else "a plain NumPy array"
        return (
            f"{name} is {kind}, which holds numbers and cannot hold a traced value; make it by "
            "np.zeros_like(x) of a traced x, or by ftrans.numpy.zeros(shape)"
        )
    number, call = made
    function = _looked_up(call.func, frame)
    own = getattr(function, "__name__", "zeros")
    arguments = ", ".join(map(ast.unparse, [*call.args, *call.keywords]))
    return (
        f"{name} is a plain NumPy array, made by {ast.unparse(call)} in line {number}: it holds numbers and cannot "
        f"hold a traced value. Write {name} = ftrans.numpy.{own}({arguments}) there"
    )


def _made_at(name: str, line: Line, frame: FrameType) -> tuple[int, ast.Call] | None:
    """Where a function made an array last, above a line: the number of the line, and the call of NumPy that made it."""
    try:
        lines, first = inspect.getsourcelines(line.code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    found: tuple[int, ast.Call] | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            continue
        number = first + node.lineno - 1
        if number <= line.number and (found is None or number > found[0]):
            if not isinstance(node.value, ast.Call):
                return None
            found = number, node.value
    function = None if found is None else _looked_up(found[1].func, frame)
    is_maker = getattr(function, "__module__", None) == "numpy" and getattr(function, "__name__", "") in _MAKERS
    return found if is_maker else None


def _instead(name: str, function: Any, call: ast.Call, frame: FrameType) -> str:
    module, own = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    given = ast.unparse(call.args[0]) if call.args else "x"
    if function is float or function is complex:
        return f'write {given}: {_KEEP}. To show it, write print(f"{{{given}:.3f}}")'
    if module in ("math", "cmath"):
        return _instead_of_math(name, own, [ast.unparse(x) for x in call.args], module == "cmath")
    if isinstance(function, type) and issubclass(function, np.generic):
        return f"write {given}.astype(np.{own})"
    if module == "numpy" and own in _ASARRAY:
        if call.args and isinstance(_looked_up(call.args[0], frame), Tracer):
            return f"write {given}.astype({_dtype_of(call)})"
        return f"write ftrans.numpy.{own}({', '.join(map(ast.unparse, [*call.args, *call.keywords]))})"
    if module.partition(".")[0] == "numpy" and hasattr(sys.modules[__package__], own):
        return f"write ftrans.numpy.{own}, which takes traced values"
    if own == "astype" or name.endswith(".astype"):
        return "write ftrans.numpy.asarray in place of np.array of the list, which is an array that is traced"
    if module.partition(".")[0] == "scipy":
        return _instead_of_scipy(function, module, own)
    return _NUMBER_ITSELF


def _instead_of_scipy(function: Any, module: str, own: str) -> str:
    parts = module.split(".")
    enter = ENTERED_LATER.get(".".join(parts[:2]))
    if enter is not None:
        enter()
    if function not in TABLE:
        return "call it in the forward method of an ftrans.autograd.Function, which gets plain values"
    package = ".".join(takewhile(lambda part: not part.startswith("_"), parts))
    return f"write `from ftrans.{package} import {own}`"


def _instead_of_math(name: str, own: str, arguments: list[str], is_complex: bool) -> str:
    if own == "log" and len(arguments) == 2:
        return f"write np.log({arguments[0]}) / np.log({arguments[1]})"
    if own == "hypot" and len(arguments) == 2:
        return f"write np.hypot({', '.join(arguments)})"
    known = _OF_MATH.get(own) or (f"np.{own}" if hasattr(np, own) and own not in _NOT_OF_NUMPY else None)
    if known is None:
        return f"compose {name} from functions of NumPy"
    # Those of `cmath` take real numbers for complex ones.
    given = [f"{x} + 0j" for x in arguments] if is_complex and known.startswith("np.") else arguments
    return f"write {known}({', '.join(given)})"


def _dtype_of(call: ast.Call) -> str:
    """The dtype among the arguments of `np.asarray` and its like, as it was written."""
    found = [k.value for k in call.keywords if k.arg == "dtype"] or call.args[1:2]
    return ast.unparse(found[0]) if found else "float"


def _parsed(expression: str) -> ast.expr | None:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None


def _call(expression: str) -> ast.Call | None:
    found = _parsed(expression)
    return found if isinstance(found, ast.Call) else None


def _is_text_with_percent(expression: str) -> bool:
    """Whether an expression is a text that is formatted in the style of C."""
    found = _parsed(expression)
    is_percent = isinstance(found, ast.BinOp) and isinstance(found.op, ast.Mod)
    return is_percent and isinstance(found.left, ast.Constant) and isinstance(found.left.value, str)


def _looked_up(node: ast.expr, frame: FrameType) -> Any:
    """The object that a name, or an attribute of a module, stands for in a frame; None for all else."""
    if isinstance(node, ast.Name):
        places = (frame.f_locals, frame.f_globals, vars(builtins))
        return next((place[node.id] for place in places if node.id in place), None)
    if isinstance(node, ast.Attribute):
        owner = _looked_up(node.value, frame)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None


def _frame_of(line: Line | None) -> FrameType | None:
    """The innermost frame that runs the code of a line."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (line is None or frame.f_code is not line.code):
        frame = frame.f_back
    return frame


def _installed_package(frame: FrameType) -> str | None:
    """The package whose code runs in a frame, if it is one that was installed, and not the user's."""
    path = frame.f_code.co_filename
    folders = [f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages")]
    if of_package(path) is not None or not any(folder in path for folder in folders):
        return None
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] or None
