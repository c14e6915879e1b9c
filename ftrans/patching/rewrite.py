"""The source of a module with each call that may need another form rewritten: `f(x)` becomes `form(f)(x)`.

Only what is called is wrapped, and not the call: arguments, frames, tracebacks and errors stay what they were, and
where no trace runs `form(f)` is `f` itself.  So a function is found under whatever name it goes by: an import, an
alias, a default argument, an attribute, an entry of a table.

Elements that are read at a computed place, `table[i]`, become `element(table, i)`, since NumPy's arrays have no
protocol for traced indices.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

# The names of `form` and `element` in the modules whose code is rewritten.
FORM, ELEMENT = "__ftrans_form__", "__ftrans_element__"

# Methods of Python's own containers and texts, which no array has.
_OF_CONTAINERS = {n for t in (str, list, dict, set, tuple, bytes) for n in dir(t)} - {"copy", "sort", "index", "fill"}

# What cannot be told before the code runs.
_UNKNOWN: Any = None


def rewritten(tree: ast.Module, namespace: dict[str, Any], may_have_form: Callable[[Any], bool]) -> ast.Module:
    """The rewritten tree, which shares nodes with the one that is given.

    Args:
        tree: the parsed source of a module.
        namespace: the names of the module; what they stand for decides which calls stay as they are.
        may_have_form: whether `form` may make something else of a value.
    """
    return _Rewriter(tree, namespace, may_have_form).visit(tree)


class _Rewriter(ast.NodeTransformer):
    """Rewrites calls and subscripts.

    Attributes:
        locals: for each function around the present node, the names that it binds.
        counters: for each of these functions, the names that only loops over `range` and its like bind.
    """

    def __init__(self, tree: ast.Module, namespace: dict[str, Any], may_have_form: Callable[[Any], bool]) -> None:
        self.namespace = namespace
        self.may_have_form = may_have_form
        self.names = _Names(tree)
        self.locals: list[set[str]] = []
        self.counters: list[set[str]] = []

    def visit_FunctionDef(self, node: Any) -> Any:
        # Defaults and decorators run where the function is defined.
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        self._enter(node)
        node.body = [self.visit(s) for s in node.body]
        self._leave()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args = self.visit(node.args)
        self._enter(node)
        node.body = self.visit(node.body)
        self._leave()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            node.value = self.visit(node.value)
        node.target = self.visit(node.target)
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        wanted = self._is_wanted(node.func)
        self.generic_visit(node)
        if wanted:
            node.func = _call(FORM, node.func, node.func)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value = self._value(node.value)
        may_be_array = value is _UNKNOWN or (hasattr(value, "__array__") and not isinstance(value, type))
        # Such as `np.r_`, which is no function, but makes arrays of what it is subscripted with.
        is_maker = value is not _UNKNOWN and not isinstance(value, type) and self.may_have_form(value)
        is_element = isinstance(node.ctx, ast.Load) and may_be_array and self._is_computed(node.slice)
        self.generic_visit(node)
        if is_maker:
            node.value = _call(FORM, node.value, node.value)
        return _call(ELEMENT, node, node.value, node.slice) if is_element else node

    def _enter(self, node: Any) -> None:
        bound, counters = self.names.bound[id(node)]
        self.locals.append(bound)
        self.counters.append(counters)

    def _leave(self) -> None:
        self.locals.pop()
        self.counters.pop()

    def _is_wanted(self, function: ast.expr) -> bool:
        """Whether a call of this expression may be one of something that has another form."""
        if isinstance(function, ast.Name) and function.id == "super":
            return False
        value = self._value(function)
        if callable(value):
            return self.may_have_form(value)
        if not isinstance(function, ast.Attribute):
            return not isinstance(function, ast.Lambda)
        name, owner = function.attr, function.value
        is_own = isinstance(owner, ast.Name) and owner.id in ("self", "cls") and name in self.names.methods
        return not is_own and not name.startswith("__") and name not in _OF_CONTAINERS

    def _value(self, node: ast.expr) -> Any:
        """What an expression of names stands for, if the module's namespace tells."""
        if isinstance(node, ast.Name):
            if any(node.id in names for names in self.locals):
                return _UNKNOWN
            return self.namespace.get(node.id, vars(builtins).get(node.id, _UNKNOWN))
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            # Attributes of modules and of Python's numbers stay what they are; those of other objects may not.
            if isinstance(owner, ModuleType):
                # Modules that are loaded when they are asked, which may fail, are not asked.
                return object.__getattribute__(owner, "__dict__").get(node.attr, _UNKNOWN)
            if owner is float or owner is complex:
                return getattr(owner, node.attr, _UNKNOWN)
        return _UNKNOWN

    def _is_computed(self, index: ast.expr) -> bool:
        """Whether an index may be a traced value."""
        if isinstance(index, ast.Tuple):
            return any([self._is_computed(i) for i in index.elts])
        if isinstance(index, ast.Name):
            return not any(index.id in names for names in self.counters)
        if isinstance(index, ast.UnaryOp):
            return self._is_computed(index.operand)
        if isinstance(index, ast.BinOp):
            return self._is_computed(index.left) or self._is_computed(index.right)
        return not isinstance(index, ast.Constant | ast.Slice | ast.JoinedStr | ast.Starred)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda)


def _call(name: str, place: ast.expr, *args: ast.expr) -> ast.Call:
    """A call of one of our functions, at the place of another expression."""
    function = ast.copy_location(ast.Name(name, ast.Load()), place)
    return ast.copy_location(ast.Call(function, list(args), []), place)


class _Names:
    """The names that each function of a module binds.

    Attributes:
        bound: for the `id` of a function's node, the names that it binds, and those of them that only loops over
            integers bind.
        methods: the names of the functions in classes.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.bound: dict[int, tuple[set[str], set[str]]] = {}
        self.methods: set[str] = set()
        self._collect(tree, tree.body)

    def _collect(self, scope: ast.AST, nodes: list[Any]) -> None:
        """Collect the names of one scope, and of those inside it."""
        other = _parameters(scope)
        counters: dict[int, str] = {}
        stored: list[ast.Name] = []
        inner: list[Any] = []
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is not ast.Load:
                    stored.append(node)
                continue
            if kind in _SCOPES:
                inner.append(node)
            elif kind is ast.For or kind is ast.comprehension:
                target = _counter(node)
                if target is not None:
                    counters[id(target)] = target.id
            elif kind is ast.Import or kind is ast.ImportFrom:
                other |= {(a.asname or a.name).partition(".")[0] for a in node.names}
            elif kind is ast.Global or kind is ast.Nonlocal:
                other |= set(node.names)
            elif kind is ast.ClassDef:
                self.methods |= {f.name for f in node.body if type(f) in _FUNCTIONS}
            if kind is not ast.Lambda and isinstance(getattr(node, "name", None), str):
                # Functions, classes, caught exceptions and patterns.
                other.add(node.name)
            waiting.extend(_parts(node))
        other |= {node.id for node in stored if id(node) not in counters}
        self.bound[id(scope)] = other | set(counters.values()), set(counters.values()) - other
        for node in inner:
            self._collect(node, node.body if isinstance(node.body, list) else [node.body])


def _parameters(scope: Any) -> set[str]:
    if type(scope) not in _SCOPES:
        return set()
    given = scope.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {a.arg for a in every if a is not None}


def _parts(node: Any) -> Iterator[ast.AST]:
    """The nodes within a node that belong to the same scope: of a function its defaults and decorators."""
    if type(node) in _SCOPES:
        yield from (d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None)
        yield from getattr(node, "decorator_list", ())
        return
    for name in node._fields:
        part = getattr(node, name, None)
        if isinstance(part, list):
            yield from (p for p in part if isinstance(p, ast.AST))
        elif isinstance(part, ast.AST) and not isinstance(part, ast.expr_context | ast.operator):
            yield part


def _counter(loop: Any) -> ast.Name | None:
    """The target of a loop that is a plain integer: that of `range`, or the first one of `enumerate`."""
    if not (isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name)):
        return None
    target = loop.target
    if loop.iter.func.id == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif loop.iter.func.id != "range":
        return None
    return target if isinstance(target, ast.Name) else None
