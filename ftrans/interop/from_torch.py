"""from_torch: a function of tensors of torch, or a module, as a function of arrays and traced values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ..api.call import check_function, name_of, named, record_or_run, type_name
from ..base import tree
from ..base.cell import Holder
from ..base.foreign_arrays import is_tensor, numpy_of
from ..base.keys import exact
from ..base.lookalikes import refuse_lookalike
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer, recording_in
from ..core.types import ArrayType, type_of
from ..core.witness import example_of
from ..xla import is_jax
from .tensors import tensor_of, type_of_tensor
from .torch_code import TorchCode, call_torch


def from_torch(g: Any) -> Any:
    """A function of tensors of torch as a function of arrays, which may be a part of any program.

    torch computes and differentiates it, to every order: `ft.grad`, `jacobian`, `hessian` and `vmap` of functions that
    call it ask `torch.func.vjp`, `jvp` and `vmap`.  In compiled programs it runs on the host, as Python code does; its
    arguments are copies.  `nn.from_torch` is about weights: it loads those of a model of torch into one of ftrans.

    Args:
        g: the function.  It returns tensors, or containers of them, and must be pure: it is called once on an example
            to learn the types of its results, and again for each derivative.  What it closes over is constant.  Or a
            `torch.nn.Module`.

    Returns:
        A function of the same arguments, with arrays, traced values and floating-point numbers for tensors, also in
        containers.  Other arguments, such as integers and texts, reach `g` as they are; it is called on an example for
        each of them.

        For a module, a pair `(apply, parameters)`: a dictionary from the names of the module's parameters to NumPy
        arrays, copies of what they hold, and the function `apply(parameters, *args, **kwargs)`, which calls the module
        with these parameters.  The dictionary may hold buffers, too, under their names in `state_dict()`; those that it
        does not hold are read from the module.  What `forward` writes to buffers is dropped.

    Raises:
        TypeError: `g` is not callable; later, it returns something other than tensors, or the parameters of a module
            are no dictionary.
        ValueError: it draws random numbers, as dropout does, so its derivatives would be those of another draw; or the
            module has no parameter or buffer of a given name.

    Example:
        >>> import numpy as np, torch, ftrans as ft  # doctest: +SKIP
        >>> g = ft.from_torch(lambda x: torch.special.erfcx(x).sum())  # doctest: +SKIP
        >>> ft.grad(lambda x: g(np.sin(x)))(np.zeros(2))  # doctest: +SKIP
        array([-1.12837917, -1.12837917])
        >>> apply, parameters = ft.from_torch(torch.nn.Linear(3, 1))  # doctest: +SKIP
        >>> ft.grad(lambda p: np.sum(apply(p, np.ones(3, np.float32))))(parameters)["weight"]  # doctest: +SKIP
        array([[1., 1., 1.]], dtype=float32)
    """
    if any(c.__name__ == "Module" and c.__module__.startswith("torch.nn.") for c in type(g).__mro__):
        return _of_module(g)
    check_function(g, "from_torch", "g")
    calls = _Calls(g)

    @functools.wraps(g)
    def g_of_arrays(*args: Any, **kwargs: Any) -> Any:
        return calls.result(args, kwargs)

    return named(g_of_arrays, g, "from_torch")


def _of_module(module: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    own = type(module).__name__
    # The modes, in training or not, in which the module has drawn no random numbers.
    modes_without_draws = set()

    def apply(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        if not isinstance(parameters, dict):
            raise TypeError(
                f"{own} takes a dictionary of its parameters before its arguments; write apply(parameters, x)"
                + at_line(user_line())
            )
        # Tied parameters have several names.
        found = module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)
        names = [name for part in found for name, _ in part]
        unknown = sorted(parameters.keys() - names)
        if unknown:
            raise ValueError(
                f"{own} has no parameter or buffer {', '.join(map(repr, unknown))}; it has "
                f"{', '.join(map(repr, names))}{at_line(user_line())}"
            )
        # The module may write to its buffers.
        buffers = {name: parameters.get(name, x).clone() for name, x in module.named_buffers()}
        modes = tuple([part.training for part in module.modules()])
        with nullcontext() if modes in modes_without_draws else _refusing_draws(own):
            result = torch.func.functional_call(module, {**parameters, **buffers}, args, kwargs)
        modes_without_draws.add(modes)
        return result

    apply.__name__ = own
    parameters = {name: np.array(numpy_of(x)) for name, x in module.named_parameters()}
    return from_torch(apply), parameters


@contextmanager
def _refusing_draws(name: str) -> Iterator[None]:
    """Raise if what is done meanwhile, for the function of a name, draws random numbers."""
    import torch

    before = torch.get_rng_state()
    yield
    if not torch.equal(before, torch.get_rng_state()):
        raise ValueError(
            f"{name} draws random numbers, so its derivatives would be those of another draw than its value; call "
            f"module.eval(), or draw before, and pass what was drawn as an argument{at_line(user_line())}"
        )


class _Known(NamedTuple):
    """A function for arguments of one signature.

    Attributes:
        code: it as a function of tensors.
        structure: the structure of its result.
    """

    code: TorchCode
    structure: Any


class _Calls:
    """Takes the calls of a function of tensors apart.

    Args:
        g: the function.
    """

    def __init__(self, g: Callable[..., Any]) -> None:
        self._g = g
        self._known: dict[Any, _Known] = {}

    def result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result for arrays, as arrays or traced values."""
        leaves, structure = tree.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if _is_operand(x)]
        others = {i: x for i, x in enumerate(leaves) if not _is_operand(x)}
        tensors = [x for x in others.values() if is_tensor(x)]
        if tensors and not places:
            return self._g(*args, **kwargs)
        for x in tensors:
            if x.requires_grad:
                refuse_lookalike(x)
        operands = [np.asarray(x)[()] if is_plain(x, float | complex) else x for x in (leaves[i] for i in places)]
        types = [type_of(x) for x in operands]
        key = (structure, tuple(types), tuple([(i, exact(x)) for i, x in others.items()]))
        known = self._known.get(key)
        if known is None:
            count = len(leaves)

            def call(*tensors: Any) -> Any:
                values = others | dict(zip(places, tensors, strict=True))
                new_args, new_kwargs = tree.unflatten(structure, [values[i] for i in range(count)])
                return self._g(*new_args, **new_kwargs)

            known = self._known[key] = self._learn(call, types, operands)
        name = name_of(self._g)
        outs = record_or_run(name, lambda xs: call_torch(*xs, code=known.code), operands)
        return tree.unflatten(known.structure, outs)

    def _learn(self, call: Callable[..., Any], types: Sequence[ArrayType], operands: Sequence[Any]) -> _Known:
        """Call the function on an example of its arguments."""
        import torch

        examples = [example_of(x) for x in operands]
        ones = [np.ones(t.shape, t.dtype) if x is None else x for x, t in zip(examples, types, strict=True)]
        name = name_of(self._g)
        try:
            with recording_in(None), torch.no_grad(), _refusing_draws(name):
                result = call(*[tensor_of(np.array(x)) for x in ones])
        except Exception as error:
            if any([x is None for x in examples]):
                error.add_note(
                    f"  {name} was called on ones, to learn the types of its results. If it is not defined there, call "
                    f"it once on arrays of these types before, outside of the traced function"
                )
            raise
        leaves, structure = tree.flatten(result)
        for index, x in enumerate(leaves):
            if not is_tensor(x):
                where = f"result{tree.paths(result)[index]}"
                raise TypeError(
                    f"{name} is to return tensors, but it returned {type_name(x)} at {where}; write "
                    f"torch.as_tensor(x), and x.sum() in place of x.sum().item(){at_line(user_line())}"
                )

        def function(*tensors: Any) -> Sequence[Any]:
            return tree.flatten(call(*tensors))[0]

        return _Known(TorchCode(name, function, types, [type_of_tensor(x) for x in leaves]), structure)


def _is_operand(x: Any) -> bool:
    if type(x) is Tracer or isinstance(x, Holder) or is_jax(x):
        return True
    return isinstance(x, np.ndarray | np.generic | float | complex)
