"""Attributes that a traced value does not have: what is said to somebody who asks for one."""

from __future__ import annotations

import sys

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer

# Where functions are looked for that somebody takes for methods, and what the modules are called in code.
_MODULES = {"np": "numpy", "np.linalg": "numpy.linalg", "np.fft": "numpy.fft", "ftrans.scipy.special": "scipy.special"}


class MissingAttribute(AttributeError):
    """A traced value was asked for an attribute that it does not have.

    What is said is found when somebody reads it, because `hasattr` asks without wanting to know.
    """

    def __init__(self, x: Tracer, name: str) -> None:
        super().__init__(name=name, obj=x)
        self._type = x.type
        # NumPy asks each element of a list for its protocols, and reads no message.
        self._line = None if name.startswith("__array_") else user_line()

    def __str__(self) -> str:
        if hasattr(np.ndarray, self.name):
            said = (
                f"numpy.ndarray.{self.name} has no meaning for a traced value ({self._type}), which has no memory of "
                "its own, or no rule in ftrans; return the value from the traced function, and ask the array"
            )
            if self.name == "tobytes":
                said += ". If the bytes are the key of a cache, remove the cache"
        else:
            said = f"a traced value ({self._type}) has no attribute {self.name!r}{_instead(self.name)}"
        return f"{said}{at_line(self._line)}"


def _instead(name: str) -> str:
    from .torch_names import INSTEAD

    if name in INSTEAD:
        return f". Instead: {INSTEAD[name]}"
    found = next((code for code, module in _MODULES.items() if _is_function(module, name)), None)
    if found is not None:
        return f"; write {found}.{name}(x)"
    import difflib

    near = difflib.get_close_matches(name, [a for a in dir(Tracer) if not a.startswith("_")], 1, 0.8)
    return f"; did you mean {near[0]!r}?" if near else ""


def _is_function(module: str, name: str) -> bool:
    function = getattr(sys.modules.get(module), name, None)
    return callable(function) and not isinstance(function, type)
