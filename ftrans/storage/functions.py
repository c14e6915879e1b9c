"""Functions of ftrans, and what they call, as text that runs without ftrans.

A function is written as it stands in its file, without annotations.  Names that mean something of ftrans are replaced:
functions and classes are written out too, constants by their values, attributes of `self` by what they are.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import inspect
import itertools
import linecache
import math
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..base.progress import counted
from ..core.primitive import Primitive
from ..core.program import Program
from ..run.stand_alone import Function

# Names of variables in the text are at most so long, and have small letters only.
_LONGEST_NAME = 4
# What the text may import, beside Python's own modules.
_LIBRARIES = ("numpy", "scipy", "ml_dtypes")


class CannotBeWritten(Exception):
    """A value that has no text."""


class Functions:
    """Functions, classes and values that a text needs, as text.

    Attributes:
        imports: statements that import modules.
        texts: definitions, in an order in which they can run.

    Args:
        written: names the function of a program, writing it out.
        array: names an array, writing it out.
    """

    def __init__(self, written: Callable[[Function], str], array: Callable[[Any], str]) -> None:
        self.imports: dict[str, None] = {}
        self.texts: list[str] = []
        self._names: dict[Any, str] = {}
        self._kept: list[Any] = []
        self._taken = {*dir(builtins), "np"}
        self._written = written
        self._array = array

    def fresh(self, name: str) -> str:
        """An unused name like this one, which no variable has."""
        name = name.strip("<>") or "function"
        if len(name) <= _LONGEST_NAME and name.isalpha() and name.islower():
            name += "_"
        found, count = name, 1
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    def variable(self, name: str) -> str:
        """An unused name like this one, for an argument."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def expression(self, value: Any, name: str = "function") -> str:
        """Text that stands for a value; what it names is written out.

        Raises:
            CannotBeWritten: there is none.
        """
        cls = type(value)
        if value is None or cls in (bool, int, str) or value is Ellipsis:
            return repr(value)
        if cls is float:
            return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
        if isinstance(value, np.dtype):
            return self._dtype(value)
        if isinstance(value, np.generic):
            return self._number(value)
        if isinstance(value, Program):
            raise CannotBeWritten(f"the program {value.name}, since it makes derivatives of it while it runs")
        if isinstance(value, Function):
            return self._written(value)
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if cls in (list, tuple, set, frozenset, dict):
            return self._container(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = ", ".join(f"{k}={self.expression(v)}" for k, v in zip(value._fields, value, strict=True))
            return f"{self.expression(cls)}({fields})"
        if isinstance(value, functools.partial):
            self.imports["import functools"] = None
            rest = [
                *map(self.expression, value.args),
                *(f"{k}={self.expression(v)}" for k, v in value.keywords.items()),
            ]
            return f"functools.partial({', '.join([self.expression(value.func), *rest])})"
        return self._callable(value, name)

    def _dtype(self, dtype: np.dtype[Any]) -> str:
        if dtype.name == "bfloat16":
            self.imports["import ml_dtypes"] = None
            return "np.dtype(ml_dtypes.bfloat16)"
        return f"np.dtype({dtype.name!r})"

    def _number(self, value: np.generic) -> str:
        if value.dtype.kind in "biufc":
            name = "bool_" if value.dtype.kind == "b" else value.dtype.name
            item = value.item()
            if isinstance(item, complex):
                return f"np.{name}(complex({self.expression(item.real)}, {self.expression(item.imag)}))"
            return f"np.{name}({self.expression(item)})"
        return f"np.frombuffer(bytes.fromhex({value.tobytes().hex()!r}), {self._dtype(value.dtype)})[0]"

    def _module(self, module: ModuleType) -> str:
        if module is np:
            return "np"
        if module.__name__.split(".")[0] == "ftrans":
            raise CannotBeWritten(f"the module {module.__name__}")
        self.imports[f"import {module.__name__}"] = None
        return module.__name__

    def _container(self, value: Any) -> str:
        if type(value) is dict:
            return "{" + ", ".join(f"{self.expression(k)}: {self.expression(v)}" for k, v in value.items()) + "}"
        items = ", ".join(map(self.expression, value))
        if type(value) is tuple:
            return f"({items},)" if len(value) == 1 else f"({items})"
        return f"[{items}]" if type(value) is list else f"{type(value).__name__}([{items}])"

    def _callable(self, value: Any, name: str) -> str:
        bound = getattr(value, "__self__", None)
        if isinstance(bound, np.ufunc):
            return f"{self.expression(bound)}.{value.__name__}"
        if isinstance(value, MethodType) and (_is_ours(type(bound)) or isinstance(bound, Primitive)):
            return self._defined(value.__func__, bound, name)
        if isinstance(value, MethodType) and isinstance(bound, type) and _is_ours(bound):
            return f"{self.expression(bound)}.{value.__name__}"
        if _is_ours(value):
            return self._class(value) if isinstance(value, type) else self._defined(value, None, name)
        return self._public(value)

    def _public(self, value: Any) -> str:
        """The name of a function or class of another library."""
        name = str(getattr(value, "__name__", None))
        if isinstance(value, np.ufunc) or str(getattr(value, "__module__", "")).startswith("numpy"):
            for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
                if getattr(module, name, None) is value:
                    return f"{prefix}.{name}"
        if isinstance(value, np.ufunc):
            import scipy.special

            if getattr(scipy.special, name, None) is value:
                self.imports["import scipy.special"] = None
                return f"scipy.special.{name}"
        module_name = getattr(value, "__module__", None)
        if module_name == "builtins":
            return str(value.__name__)
        if str(module_name).split(".")[0] not in (*_LIBRARIES, *sys.stdlib_module_names):
            raise CannotBeWritten(f"{value!r:.60} of {module_name}")
        # SciPy's functions are found where users import them from, not in the private file that defines them.
        parts = str(module_name).split(".")
        public = ".".join(itertools.takewhile(lambda part: part[0] != "_", parts))
        for place in (public, str(module_name)):
            try:
                found = __import__(place, fromlist=[name])
            except ImportError:
                continue
            if getattr(found, name, None) is value:
                self.imports[f"import {place}"] = None
                return f"{place}.{name}"
        raise CannotBeWritten(f"{value!r:.60}, an object of {type(value).__name__}")

    def _class(self, cls: type) -> str:
        known = self._names.get(cls)
        if known is not None:
            return known
        name = self._names[cls] = self.fresh(cls.__name__)
        node = _node_at(cls.__module__, lambda n: isinstance(n, ast.ClassDef) and n.name == cls.__name__)
        renamed = {cls.__name__: name}
        namespace = vars(inspect.getmodule(cls))
        members = []
        for member in node.body:
            code = _code_of(vars(cls).get(getattr(member, "name", "")))
            variables = set() if code is None else _locals(code)
            names = _Names(self, namespace, {}, None, variables, renamed)
            members.append(names.field(member) if isinstance(member, ast.AnnAssign) else names.visit(member))
        outside = _Names(self, namespace, {}, None, set(), renamed)
        node.bases = [outside.visit(b) for b in node.bases if not isinstance(b, ast.Subscript)]
        node.name, node.body = name, members
        self._put(node)
        return name

    def _defined(self, function: Any, bound: Any, name: str) -> str:
        plain = inspect.unwrap(function)
        if not isinstance(plain, FunctionType):
            raise CannotBeWritten(f"an object of {type(function).__name__}")
        cells = dict(zip(plain.__code__.co_freevars, (c.cell_contents for c in plain.__closure__ or ()), strict=True))
        key = (plain.__code__, id(bound), tuple(map(id, cells.values())), tuple(map(id, plain.__defaults__ or ())))
        known = self._names.get(key)
        if known is not None:
            return known
        own = plain.__name__
        if isinstance(bound, Primitive) and own in ("numpy", "overwrite"):
            own = bound.name if own == "numpy" else f"write_{bound.name}"
        text = self._names[key] = self.fresh(name if own == "<lambda>" else own)
        self._kept.append((bound, cells))
        node = _node_of(plain)
        names = _Names(self, plain.__globals__, cells, bound, _locals(plain.__code__), {})
        self._put(names.function(node, text, _purpose(bound, plain)))
        return text

    def _put(self, node: Any) -> None:
        self.texts.append(ast.unparse(ast.fix_missing_locations(node)))

    def alias(self, name: str) -> str:
        """Another name for what is written out, where a function has a variable with its name."""
        known = self._names.get(("alias", name))
        if known is None:
            known = self._names["alias", name] = self.fresh(f"{name}_")
            self.texts.append(f"{known} = {name}")
        return known


class _Names(ast.NodeTransformer):
    """Replaces names in the text of a function by what stands for their values.

    Args:
        functions: writes out what is named.
        namespace: the global names.
        cells: the names from enclosing functions.
        bound: what `self` is, for a method.
        variables: the names of local variables.
        known: names that are replaced by others.
    """

    def __init__(
        self,
        functions: Functions,
        namespace: dict[str, Any],
        cells: dict[str, Any],
        bound: Any,
        variables: set[str],
        known: dict[str, str],
    ) -> None:
        self._functions, self._namespace, self._cells, self._bound = functions, namespace, cells, bound
        self._variables, self._known = variables, known
        self._imported: dict[str, Any] = {}

    def function(self, node: Any, name: str, purpose: str | None) -> Any:
        """The definition of a function, as one of this name at the top of a file."""
        if isinstance(node, ast.Lambda):
            body: list[Any] = [ast.Return(self.visit(node.body))]
            arguments = self.visit(node.args)
            return ast.FunctionDef(name, arguments, body, [])
        if self._bound is not None:
            node.args.args = node.args.args[1:]
        node.name = name
        node.decorator_list = [d for d in node.decorator_list if not self._is_left_out(d)]
        if purpose is not None and ast.get_docstring(node) is None:
            node.body.insert(0, ast.Expr(ast.Constant(purpose)))
        return self.visit(node)

    def _is_left_out(self, decorator: ast.expr) -> bool:
        """Whether a decorator has no meaning in the text: for methods, or for what shows its progress."""
        if ast.unparse(decorator) in ("staticmethod", "classmethod"):
            return True
        called = decorator.func if isinstance(decorator, ast.Call) else None
        return isinstance(called, ast.Name) and self._value(called.id) is counted

    def field(self, node: ast.AnnAssign) -> Any:
        """A field of a class, which keeps an annotation."""
        node.annotation = ast.Name("object")
        node.value = node.value and self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return ast.Pass() if node.value is None else ast.Assign([self.visit(node.target)], self.visit(node.value))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if not node.level:
            return node
        package = __import__(f"{self._namespace['__package__']}", fromlist=["_"]).__name__.split(".")
        place = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
        for alias in node.names:
            self._imported[alias.asname or alias.name] = getattr(__import__(place, fromlist=["_"]), alias.name)
        return ast.Pass()

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name):
            name = node.value.id
            if name == "self" and self._bound is not None:
                return self._parsed(getattr(self._bound, node.attr), node.attr)
            module = self._value(name)
            if isinstance(module, ModuleType) and _is_ours(module):
                return self._parsed(getattr(module, node.attr), node.attr)
            if _is_ours(type(module)) and not isinstance(module, type) and not isinstance(module, tuple):
                return self._parsed(getattr(module, node.attr), node.attr)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return node
        if node.id in self._known:
            return ast.Name(self._known[node.id], node.ctx)
        value = self._value(node.id)
        return node if value is _UNKNOWN else self._parsed(value, node.id)

    def _value(self, name: str) -> Any:
        if name in self._imported:
            return self._imported[name]
        if name in self._cells:
            return self._cells[name]
        if name in self._variables or name not in self._namespace:
            return _UNKNOWN
        return self._namespace[name]

    def _parsed(self, value: Any, name: str) -> Any:
        text = self._functions.expression(value, name)
        if text in self._variables and text not in self._imported:
            text = self._functions.alias(text)
        return ast.parse(text, mode="eval").body


_UNKNOWN = object()


def _is_ours(x: Any) -> bool:
    name = x.__name__ if isinstance(x, ModuleType) else getattr(x, "__module__", None)
    return isinstance(name, str) and name.split(".")[0] == "ftrans"


def _locals(code: CodeType) -> set[str]:
    """The local variables of a function, and of those inside it."""
    found = {*code.co_varnames, *code.co_cellvars}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _locals(inner)
    return found


def _code_of(member: Any) -> CodeType | None:
    """The code of a member of a class, if it is a function of some kind."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return getattr(function, "__code__", None)


def _purpose(bound: Any, function: FunctionType) -> str | None:
    """What a function is for: the first line of the docstring of its primitive."""
    text = inspect.getdoc(type(bound)) if isinstance(bound, Primitive) and function.__doc__ is None else None
    return text and text.splitlines()[0].replace("`", "")


@functools.lru_cache(maxsize=100)
def _nodes(module: str) -> list[Any]:
    """The definitions of functions and classes in the text of a module."""
    lines = linecache.getlines(sys.modules[module].__file__ or "")
    wanted = (ast.FunctionDef, ast.ClassDef, ast.Lambda)
    return [node for node in ast.walk(ast.parse("".join(lines))) if isinstance(node, wanted)]


def _node_at(module: str, fits: Callable[[Any], bool], innermost: bool = False) -> Any:
    """A fresh node of the text of a module."""
    found = [n for n in _nodes(module) if fits(n)]
    if not found:
        raise CannotBeWritten(f"code in {module} whose source is not at hand")
    return copy.deepcopy(found[-1 if innermost else 0])


def _node_of(function: FunctionType) -> Any:
    """The node of the text that defines a function."""
    code = function.__code__
    if function.__name__ != "<lambda>":
        return _node_at(
            function.__module__,
            lambda n: (
                isinstance(n, ast.FunctionDef)
                and n.name == function.__name__
                and code.co_firstlineno in (n.lineno, *(d.lineno for d in n.decorator_list))
            ),
        )
    # Several may begin on one line, or inside each other: the text of an instruction tells which one it is.
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None]
    first, last = min(p for p in places if p[1]), max(places)

    def holds(n: Any) -> bool:
        if not isinstance(n, ast.Lambda) or n.lineno != code.co_firstlineno:
            return False
        body = n.body
        return (body.lineno, body.col_offset) <= first and last <= (body.end_lineno, body.end_col_offset)

    return _node_at(function.__module__, holds, innermost=True)
