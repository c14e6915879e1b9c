"""FunctionLayer: a layer that calls one function of `ftrans.nn.functional` with arguments that it keeps.

    class ELU(FunctionLayer, of=F.elu):
        '''(an example)'''

        alpha: float = 1.0
        inplace: bool = False

The annotated names are the arguments of the layer, as in a dataclass.  What is computed, and what the arguments mean,
is said once: in the docstring of the function, from which that of the layer is made.  The class adds an example.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any, ClassVar, dataclass_transform

from ...base.source import at_line, user_line
from ..modules.module import Module

_SECTIONS = ("Args", "Returns", "Raises", "Example")
_COMMON = {
    "input": ["    input: array."],
    "inplace": ["    inplace: accepted as in torch, without effect: no layer overwrites its input."],
}
_SELF = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)


@dataclass_transform(eq_default=False)
class FunctionLayer(Module):
    """Base class of these layers; `of` is the function."""

    _function: ClassVar[Callable[..., Any]]
    # The arguments of the layer, and those among them that the function takes, too.
    _arguments: ClassVar[tuple[str, ...]] = ()
    _passed: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, of: Callable[..., Any] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if of is None:
            return
        signature = _signature(cls)
        parameters = inspect.signature(of).parameters
        cls._function = staticmethod(of)
        cls._arguments = tuple(signature.parameters)[1:]
        cls._passed = tuple([name for name in cls._arguments if name in parameters and name != "inplace"])
        inputs = [x for x in parameters.values() if x.default is Parameter.empty and x.name not in cls._arguments]
        cls.__init__ = _init(cls, signature)  # type: ignore[method-assign]
        if cls.forward is Module.forward:
            cls.forward = _forward(cls, signature.replace(parameters=[_SELF, *inputs]))  # type: ignore[method-assign]
        else:
            inputs = list(inspect.signature(cls.forward).parameters.values())[1:]
        cls.__doc__ = _docstring(of, cls._arguments, [x.name for x in inputs], cls.__doc__)

    def _kept(self, name: str, value: Any) -> Any:
        """What an argument is as an attribute; subclasses check or convert it."""
        return value

    def extra_repr(self) -> str:
        shown = {name: getattr(self, name) for name in self._arguments}
        if not shown.get("inplace", True):
            del shown["inplace"]
        return ", ".join([f"{name}={x!r}" if isinstance(x, str) else f"{name}={x}" for name, x in shown.items()])


def _signature(cls: type[FunctionLayer]) -> Signature:
    """The signature of `__init__`: the annotated names of a class and of those above it."""
    found = {"self": _SELF}
    for owner in reversed(cls.__mro__[: cls.__mro__.index(FunctionLayer)]):
        kind: Any = Parameter.POSITIONAL_OR_KEYWORD
        for name, annotation in inspect.get_annotations(owner).items():
            if annotation == "KW_ONLY":
                kind = Parameter.KEYWORD_ONLY
            elif not annotation.startswith("ClassVar"):
                default = vars(owner).get(name, Parameter.empty)
                found[name] = Parameter(name, kind, default=default, annotation=annotation)
    return Signature(list(found.values()))


def _init(cls: type[FunctionLayer], signature: Signature) -> Callable[..., None]:
    def __init__(self: FunctionLayer, *args: Any, **kwargs: Any) -> None:
        bound = _bound(cls.__name__, signature, (self, *args), kwargs)
        bound.apply_defaults()
        for name in cls._arguments:
            setattr(self, name, self._kept(name, bound.arguments[name]))

    return _method_of(cls, __init__, signature)


def _forward(cls: type[FunctionLayer], signature: Signature) -> Callable[..., Any]:
    function, names, count = cls._function, cls._passed, len(signature.parameters) - 1

    def forward(self: FunctionLayer, *inputs: Any, **named: Any) -> Any:
        """What the function returns."""
        if named or len(inputs) != count:
            inputs = _bound(f"{cls.__name__}.forward", signature, (self, *inputs), named).args[1:]
        if not names:
            return function(*inputs)
        return function(*inputs, **{name: getattr(self, name) for name in names})

    return _method_of(cls, forward, signature)


def _bound(name: str, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
    """The arguments of a call of a method by their names; an error shows what the method takes."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        taken = list(signature.parameters.values())[1:]
        shown = Signature([x.replace(annotation=Parameter.empty) for x in taken])
        raise TypeError(f"{name}{shown}: {error}{at_line(user_line())}") from None


def _method_of(cls: type, function: Any, signature: Signature) -> Any:
    function.__qualname__, function.__module__ = f"{cls.__qualname__}.{function.__name__}", cls.__module__
    function.__signature__ = signature
    return function


def _docstring(of: Callable[..., Any], arguments: Iterable[str], inputs: Iterable[str], example: str | None) -> str:
    """The docstring of a layer: that of its function, with the inputs apart, and an example of its own."""
    sections = _sections(of.__doc__ or "")
    about = _COMMON | _entries(sections.get("Args", []))
    if example:
        code = inspect.cleandoc(example).split("\n")
        imports = [f">>> {line}" for line in ("import numpy as np", "from ftrans import nn")]
        sections["Example"] = [f"    {line}" for line in [*imports, *code]]
    sections["Args"] = [line for name in arguments for line in about.get(name, ())]
    sections["Inputs"] = [line for name in inputs for line in about.get(name, ())]
    parts = ["\n".join(sections[""])]
    for name in ("Args", "Inputs", *_SECTIONS[1:]):
        if sections.get(name):
            parts.append("\n".join([f"{name}:", *sections[name]]))
    return "\n\n".join(parts) + "\n"


def _sections(text: str) -> dict[str, list[str]]:
    """The lines of a docstring by section; what is before the first one is the section ""."""
    found: dict[str, list[str]] = {"": []}
    current = found[""]
    for line in inspect.cleandoc(text).split("\n"):
        if line.endswith(":") and line[:-1] in _SECTIONS:
            current = found[line[:-1]] = []
        else:
            current.append(line)
    return {name: "\n".join(lines).strip("\n").split("\n") for name, lines in found.items()}


def _entries(lines: Iterable[str]) -> dict[str, list[str]]:
    """The lines of a section about each argument."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if line[4:5] != " ":
            name = line.strip().partition(":")[0]
        found.setdefault(name, []).append(line)
    return found
