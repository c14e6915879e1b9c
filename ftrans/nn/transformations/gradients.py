"""Gradients with respect to modules: `value_and_grad` and `grad` of functions that take modules and change them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, NamedTuple, TypeVar, overload

from ...api import derivatives
from ...api.call import name_of, named, normalize_argnums
from ...api.gradient_edits import grad_hook
from ...api.taps import tap
from ...base import tree
from ...base.cell import read
from ...base.source import at_line, user_line
from ...base.tracebacks import short_tracebacks
from ...base.type_variables import Aux, Params, Result
from ...core.trace import current_builder
from ..cells.kinds import Parameter
from ..modules.bare import capturing
from ..modules.calls import call_filled, settled
from ..modules.graph import Graph, graph_of
from ..modules.module import Module
from ..modules.roots import graph_of_arguments, in_places, require_module, with_places
from .traces import require_untraced

ModuleType = TypeVar("ModuleType", bound=Module)


@overload
def value_and_grad(
    f: Callable[Concatenate[ModuleType, Params], tuple[Result, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    loss_scale: Any = None,
) -> Callable[Concatenate[ModuleType, Params], tuple[tuple[Result, Aux], dict[str, Any]]]: ...
@overload
def value_and_grad(  # type: ignore[overload-overlap]
    f: Callable[Concatenate[ModuleType, Params], Result],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    *,
    loss_scale: Any = None,
) -> Callable[Concatenate[ModuleType, Params], tuple[Result, dict[str, Any]]]: ...
@overload
def value_and_grad(
    f: Callable[Params, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    capture: Sequence[str] = (),
    loss_scale: Any = None,
) -> Callable[Params, Any]: ...
@overload
def value_and_grad(
    f: Callable[Params, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    capture: Sequence[str],
    loss_scale: Any = None,
) -> Callable[Params, Any]: ...
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    capture: Sequence[str] = (),
    loss_scale: Any = None,
) -> Callable[..., Any]:
    """The value of a function of modules, and its gradient with respect to their parameters.

    The function may change the modules that it is given, as batch normalization changes its running means and dropout
    its random stream; afterwards the modules hold the changes.

    Args:
        f: the function, such as a loss of a model and a batch; its result is a real scalar.
        argnums: position of the argument to differentiate with respect to, or a sequence of positions.  Of a module,
            these are the parameters with `requires_grad` set; other arguments are floating-point arrays or containers
            of them.
        has_aux: whether `f` returns a pair of which only the first element is differentiated.
        capture: paths of modules in the first argument, such as `["encoder.0"]`: their results are returned, too, with
            the gradients with respect to them.
        loss_scale: a number, or an `nn.LossScale`, by which the value is multiplied before differentiation; value and
            gradients are divided by it afterwards.

    Returns:
        A function of the same arguments that returns `(value, gradients)`.  `gradients` is a dictionary from the paths
        of the parameters to arrays of their shapes and dtypes (for an argument that is not a module, a container like
        the argument; a tuple if `argnums` is a sequence).  With `has_aux` the first element is `(value, aux)`; with
        `capture` the last is a dictionary from paths to `Tap(value, gradient)`.

    Raises:
        TypeError: the result is not a real scalar, or an argument cannot be differentiated.
        ValueError: a path in `capture` does not exist, or its module runs more than once or not at all.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1, bias=False)
        >>> loss, gradients = nn.value_and_grad(lambda model, x: model(x).sum())(model, np.array([[3.0, 4.0]]))
        >>> gradients["weight"]
        array([[3., 4.]], dtype=float32)
    """
    settings = _Settings("value_and_grad", f, argnums, has_aux, tuple(capture), loss_scale)

    @short_tracebacks
    @functools.wraps(f)
    def value_and_grad_of_f(*args: Any, **kwargs: Any) -> Any:
        return settings.run(args, kwargs)

    return named(value_and_grad_of_f, f, "value_and_grad")


@overload
def grad(
    f: Callable[Concatenate[ModuleType, Params], tuple[Any, Aux]], argnums: Literal[0] = 0, *, has_aux: Literal[True]
) -> Callable[Concatenate[ModuleType, Params], tuple[dict[str, Any], Aux]]: ...
@overload
def grad(  # type: ignore[overload-overlap]
    f: Callable[Concatenate[ModuleType, Params], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Callable[Concatenate[ModuleType, Params], dict[str, Any]]: ...
@overload
def grad(f: Callable[Params, Any], argnums: int | Sequence[int], has_aux: bool = False) -> Callable[Params, Any]: ...
def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function of modules with respect to their parameters.

    Args:
        f: as for `value_and_grad`.
        argnums: as for `value_and_grad`.
        has_aux: as for `value_and_grad`.

    Returns:
        A function of the same arguments that returns the gradients alone, or `(gradients, aux)`.

    Raises:
        TypeError: as for `value_and_grad`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.grad(lambda model, x: model(x).sum())(nn.Linear(2, 1), np.ones((1, 2)))["bias"]
        array([1.], dtype=float32)
    """
    settings = _Settings("grad", f, argnums, has_aux, (), None)

    @short_tracebacks
    @functools.wraps(f)
    def grad_of_f(*args: Any, **kwargs: Any) -> Any:
        value, gradients = settings.run(args, kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return named(grad_of_f, f, "grad")


class _Settings(NamedTuple):
    """The function to differentiate, and the options of the gradient."""

    what: str
    f: Callable[..., Any]
    argnums: int | Sequence[int]
    has_aux: bool
    capture: tuple[str, ...]
    loss_scale: Any

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        graph = graph_of_arguments(args, kwargs)
        positions = normalize_argnums(self.argnums, len(args), self.f)
        modules: list[Module] = []
        for i in positions:
            if isinstance(args[i], type):
                require_module(args[i], f"{self.what} differentiates with respect to")
        others = [with_places(args[i], modules) for i in positions]
        wanted = [_trained(graph, module) for module in modules]
        # Parameters that two arguments share are one input.
        places = list(dict.fromkeys(i for w in wanted for i in w))
        if not places and not tree.flatten(others)[0]:
            raise _nothing_to_train(self.what, self.f)
        scale: Any = getattr(self.loss_scale, "scale", self.loss_scale)
        scale = read(scale)
        changed_places: list[int] = []
        of_aux: list[Module] = []

        def pure(cells: list[Any], others: list[Any]) -> Any:
            new_args = list(args)
            for i, x in zip(positions, others, strict=True):
                new_args[i] = in_places(x, modules)
            given = dict(zip(places, cells, strict=True))
            for i, x in given.items():
                cell = graph.cells[i]
                for hook in cell.hooks if isinstance(cell, Parameter) else ():
                    x = grad_hook(x, _hook_on_cotangent(hook))
                given[i] = x

            def call() -> Any:
                with _captured(self.capture, args):
                    return settled(self.f(*new_args, **kwargs))

            out, changed = call_filled(graph, given, call)
            require_untraced(graph)
            changed_places[:] = changed
            aux: Any = None
            if self.has_aux:
                if not isinstance(out, tuple) or len(out) != 2:
                    raise TypeError(
                        f"with has_aux=True, {name_of(self.f)} must return a pair (result, auxiliary), not "
                        f"{type(out).__name__}{at_line(user_line())}"
                    )
                out, aux = out
                aux = with_places(aux, of_aux)
            scaled = out if scale is None else out * scale
            return scaled, (out, aux, [*changed.values()])

        values = [graph.cells[i].array if current_builder() is not None else graph.cells[i].value for i in places]
        taking = derivatives.value_and_grad(
            _named_after(pure, self.f), argnums=(0, 1), has_aux=True, taps=bool(self.capture)
        )
        (_, (value, aux, changed), *taps), (of_cells, of_others) = taking(values, others)
        for i, x in zip(changed_places, changed, strict=True):
            graph.cells[i].value = x
        if scale is not None:
            of_cells, of_others = tree.map_leaves(lambda g: _divided(g, scale), (of_cells, of_others))
        by_place = dict(zip(places, of_cells, strict=True))
        of_modules = [{path: by_place[i] for i, path in w.items()} for w in wanted]
        gradients = [in_places(x, of_modules) for x in of_others]
        first = [value, *([in_places(aux, of_aux)] if self.has_aux else []), *([dict(taps[0])] if self.capture else [])]
        return (first[0] if len(first) == 1 else tuple(first)), (
            gradients[0] if isinstance(self.argnums, int) else tuple(gradients)
        )


def _trained(graph: Graph, module: Module) -> dict[int, str]:
    """Indices of a module's trainable parameters in the graph, with their paths in the module."""
    places = {id(cell): i for i, cell in enumerate(graph.cells)}
    return {places[id(p)]: path for path, p in graph_of(module).trained_parameters().items()}


def _divided(gradient: Any, scale: Any) -> Any:
    return gradient / (scale.astype(gradient.dtype) if hasattr(scale, "astype") else scale)


def _hook_on_cotangent(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def replaced(cotangent: Any) -> Any:
        new = hook(cotangent)
        return cotangent if new is None else new

    return replaced


def _named_after(pure: Callable[..., Any], f: Callable[..., Any]) -> Callable[..., Any]:
    pure.__name__ = name_of(f)
    return pure


class _captured:
    """Within this block, results of the modules at some paths are tapped."""

    def __init__(self, paths: tuple[str, ...], args: tuple[Any, ...]) -> None:
        self._names: dict[int, str] = {}
        self._seen: set[str] = set()
        for path in paths:
            model = next((x for x in args if isinstance(x, Module)), None)
            found = None if model is None else dict(model.named_modules()).get(path)
            if found is None:
                known = "" if model is None else ", ".join(p for p, _ in model.named_modules() if p)
                raise ValueError(f"capture names {path!r}, but the model has the modules {known}{at_line(user_line())}")
            self._names[id(found)] = path

    def __enter__(self) -> None:
        seen = self._seen

        def look(module: Module, call: Callable[[], Any]) -> Any:
            out = call()
            name = self._names.get(id(module))
            if name is None:
                return out
            if name in seen:
                raise ValueError(f"capture names {name!r}, which runs more than once{at_line(user_line())}")
            seen.add(name)
            return tap(name, out)

        self._token = capturing.set(look if self._names else None)

    def __exit__(self, error: object, *_: object) -> None:
        capturing.reset(self._token)
        missing = [name for name in self._names.values() if name not in self._seen]
        if missing and error is None:
            raise ValueError(
                f"capture names {missing[0]!r}, which does not run, or only inside a module with its own "
                f"backward, where results cannot be captured{at_line(user_line())}"
            )


def _nothing_to_train(what: str, f: Callable[..., Any]) -> TypeError:
    return TypeError(
        f"{what} of {name_of(f)} has nothing to differentiate with respect to: no parameter of the module has "
        f"requires_grad=True{at_line(user_line())}"
    )
