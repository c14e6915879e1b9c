"""`python -m ftrans trace module:function --args ...`: prints the program of a function, and draws it."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.source import at_line, line_of_error

TRANSFORMATIONS = ("grad", "value_and_grad", "jacobian", "hessian")
_TYPE = re.compile(r"([fiucb])(\d+)\[([\d,\s]*)\]")
_KINDS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}


class CommandError(Exception):
    """What is wrong with a command line; the message says what to write."""


def run(target: str, arguments: Sequence[str], transformation: str | None, rolled: bool, svg: str | None) -> int:
    """Print the program of a function; return an exit code.

    Args:
        target: `module:function`, or `file.py:function`.
        arguments: what the function is called with: expressions of Python, or types such as f64[3].
        transformation: the name of a transformation to apply before.
        rolled: whether loops of Python are shown as loops.
        svg: a file to draw the program to; None for none.
    """
    try:
        f = found(target)
        values = [value_of(text) for text in arguments]
    except CommandError as error:
        print(f"ftrans trace: {error}", file=sys.stderr)
        return 2
    from ..api.jit import trace
    from ..debug.draw import draw

    try:
        program = trace(f if transformation is None else _transformed(f, transformation), rolled)(*values)
        print(program)
        if svg is not None:
            print(f"drawn to {draw(program).save(svg)}")
    except Exception as error:
        # It may be any error of the user's function; what was noted at it says more.
        said = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
        hint = "" if values else "\n--args gives it arguments, as in --args 'np.ones(3)' 2.0"
        line = "" if "\n  at " in said else at_line(line_of_error(error))
        print(f"ftrans trace: {said}{line}{hint}", file=sys.stderr)
        return 1
    return 0


def _transformed(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    from ..api.derivatives import grad, value_and_grad
    from ..api.jacobians import hessian, jacobian

    made: dict[str, Callable[..., Callable[..., Any]]]
    made = {"grad": grad, "value_and_grad": value_and_grad, "jacobian": jacobian, "hessian": hessian}
    return made[name](f)


def found(target: str) -> Callable[..., Any]:
    """The function of the name `module:function` or `file.py:function`.

    Raises:
        CommandError: there is none.
    """
    module_name, colon, name = target.rpartition(":")
    if not colon or not module_name or not name:
        raise CommandError(f"{target!r} names no function; write module:function or file.py:function")
    module = _module(module_name)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            near = difflib.get_close_matches(part, [n for n in dir(value) if not n.startswith("_")], 3)
            hint = f"; there is {' and '.join(near)}" if near else ""
            raise CommandError(f"{module_name} has no {part!r}{hint}")
        value = getattr(value, part)
    if not callable(value):
        raise CommandError(f"{target} is no function, but of the class {type(value).__name__}")
    if isinstance(value, type):
        raise CommandError(f"{target} is a class; give a function, or an object of the class that can be called")
    return value


def _module(name: str) -> Any:
    try:
        return _imported(name)
    except CommandError:
        raise
    except Exception as error:
        line = line_of_error(error) if not isinstance(error, SyntaxError) else None
        raise CommandError(f"{name} cannot be imported: {type(error).__name__}: {error}{at_line(line)}") from None


def _imported(name: str) -> Any:
    if not name.endswith(".py"):
        sys.path.insert(0, "")
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            # It may be another one, which this one imports.
            if not f"{name}.".startswith(f"{error.name}."):
                raise
            raise CommandError(f"{error}; a file is written with .py, as in {name.split('.')[-1]}.py:f") from None
        finally:
            sys.path.remove("")
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"there is no file {name}")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def value_of(text: str) -> Any:
    """An argument of a command line: an expression with `np`, or a type, for which it is an array of that type.

    Raises:
        CommandError: it is neither.
    """
    given = _TYPE.fullmatch(text.strip())
    if given is not None:
        kind, bits, sizes = given.groups()
        try:
            dtype = np.dtype(bool if kind == "b" else f"{_KINDS[kind]}{bits}")
        except TypeError:
            raise CommandError(f"there is no type {kind}{bits}; write f64, f32, i64, c128, ...") from None
        # Not zeros, where many functions have no derivative.
        return np.ones(tuple([int(size) for size in sizes.replace(" ", "").split(",") if size]), dtype)
    try:
        return eval(text, {"np": np})
    except Exception as error:
        raise CommandError(
            f"the argument {text!r} is no expression ({type(error).__name__}: {error}); write a number, "
            "np.ones(3), or a type such as f64[3]"
        ) from None
