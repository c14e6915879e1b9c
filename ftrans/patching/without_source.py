"""Code whose source is not at hand, such as what is typed at the prompt: global names lead to stand-ins.

The bytecode stays as it is but for names: where it asks for `np` or `sin`, it gets something that looks the function up
when it is called.  Classes are exchanged only where they are called, since they may be dtypes, or be asked for by
`isinstance`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from ..base.foreign import with_global_names
from .forms import form, may_have_form

LIBRARIES = ("numpy", "scipy", "math", "cmath")
PREFIX = "__ftrans_"


def with_stand_ins(code: CodeType, namespace: dict[str, Any]) -> CodeType:
    """The code with stand-ins for what has other forms, which are added to its namespace."""

    def exchanged(name: str, is_called: bool) -> str:
        stand_in = _stand_in(namespace.get(name, vars(builtins).get(name)), is_called)
        if stand_in is None:
            return name
        namespace[f"{PREFIX}{name}__"] = stand_in
        return f"{PREFIX}{name}__"

    code = with_global_names(code, exchanged)
    consts = [with_stand_ins(c, namespace) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_consts=tuple(consts))


def _stand_in(value: Any, is_called: bool) -> Any:
    if isinstance(value, ModuleType):
        return _Module(value) if value.__name__.partition(".")[0] in LIBRARIES else None
    if not callable(value) or not may_have_form(value) or (isinstance(value, type) and not is_called):
        return None
    return _called_by_form(value)


def _called_by_form(function: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return form(function)(*args, **kwargs)

    return call


class _Module:
    """A module, whose functions are looked up when they are called."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        stand_in = _stand_in(value, False)
        return value if stand_in is None else stand_in
