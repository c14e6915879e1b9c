"""gradcheck and gradgradcheck: check the gradients of a function of tensors.

The function is recorded, and the program of its graph is checked like that of any other function: see `ftrans.testing`.
The gradients that `backward` computes are compared with those of that program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from ..api.call import name_of
from ..base import tree
from ..base.source import at_line, user_line
from ..core.primitive import MissingRule
from ..core.types import is_inexact
from ..testing.checking import check_program, warn_of_small_step
from ..testing.derivatives import Mode, coordinates
from ..testing.failures import Failure, Report
from ..testing.precision import rounding_unit
from ..testing.subject import Settings
from ..transforms.differentiate import with_pullback
from .backward import grad
from .modes import enable_grad
from .tensor import Tensor, as_tensor, held
from .tracing import NoProgram, noting_operands, program_of

Function = Callable[..., Any]

# How far gradients of `backward` may differ from those of the program of the graph, in rounding units.
_SAME = 1e5


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_forward_ad: bool = True,
    check_backward_ad: bool = True,
) -> bool:
    """Check the gradients of a function of tensors.

    The checks are those of `ftrans.testing.check_grads`: finite differences extrapolated to step zero,
    element-by-element differences with the step `eps`, forward against reverse mode, all in double precision even for a
    function of lower precision.  In addition, `backward` is compared with the program of the graph, and a second call
    with the first.  If a check fails, each operation is checked on its own, and the error names the wrong one and your
    line.

    Args:
        func: the function; it takes tensors and returns a tensor or a container of tensors.
        inputs: its argument, or a tuple of arguments; those that require a gradient are differentiated.
        eps: the step of element-by-element differences.
        atol: absolute tolerance for these.
        rtol: relative tolerance.
        raise_exception: whether to raise if a check fails, instead of returning False.
        nondet_tol: tolerance for the difference between two computations of the same derivative.
        check_forward_ad: whether to check forward mode, where it exists.
        check_backward_ad: whether to check reverse mode.

    Returns:
        True, or False if a check fails and `raise_exception` is False.

    Raises:
        GradientError: a gradient is wrong, or the function is not differentiable at this point.
        ValueError: no input requires a gradient, or no output does.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> x = ft.autograd.tensor([0.5, 1.0], requires_grad=True)
        >>> ft.autograd.gradcheck(lambda x: np.sin(x) * x, x)
        True
    """
    modes = _modes(check_forward_ad, check_backward_ad)
    return _checked(func, inputs, Settings(1, modes, eps, atol, rtol, nondet_tol), raise_exception, "gradcheck")


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_forward_ad: bool = True,
) -> bool:
    """Check the second derivatives of a function of tensors: the gradients of its gradients.

    Args:
        func: the function; it takes tensors and returns a tensor or a container of tensors.
        inputs: its argument, or a tuple of arguments; those that require a gradient are differentiated.
        grad_outputs: for each output, the gradient of the objective with respect to it; random by default.
        eps: the step of element-by-element differences.
        atol: absolute tolerance for these.
        rtol: relative tolerance.
        raise_exception: whether to raise if a check fails, instead of returning False.
        nondet_tol: tolerance for the difference between two computations of the same derivative.
        check_forward_ad: whether to check forward mode over the gradients.

    Returns:
        True, or False if a check fails and `raise_exception` is False.

    Raises:
        GradientError: a derivative is wrong, or the function is not twice differentiable at this point.
        ValueError: no input requires a gradient, or no output does.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> x = ft.autograd.tensor([0.5, 1.0], requires_grad=True)
        >>> ft.autograd.gradgradcheck(lambda x: np.sin(x) * x, x)
        True
    """
    given = _as_tuple(inputs)
    with enable_grad():
        outputs = _outputs(func(*given), func, "gradgradcheck")
    random = np.random.default_rng(0)
    if grad_outputs is None:
        weights = [Tensor.of(random.standard_normal(y.shape).astype(y.dtype)) for y in outputs]
    else:
        weights = [as_tensor(w) for w in _as_tuple(grad_outputs)]
    weights = [Tensor.of(np.array(w.array)).requires_grad_() for w in weights]

    def gradients(*args: Any) -> tuple[Any, ...]:
        count = len(args) - len(weights)
        args, cts = args[:count], args[count:]
        ys = _outputs(func(*args), func, "gradgradcheck")
        wanted = [x for x in args if isinstance(x, Tensor) and x.requires_grad]
        found = grad(ys, wanted, list(cts), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None and g.requires_grad)

    gradients.__name__ = f"gradient of {name_of(func)}"
    settings = Settings(1, _modes(check_forward_ad, True), eps, atol, rtol, nondet_tol)
    return _checked(gradients, (*given, *weights), settings, raise_exception, "gradgradcheck")


def _modes(forward: bool, reverse: bool) -> tuple[Mode, ...]:
    modes: list[Mode] = []
    if forward:
        modes.append("forward")
    if reverse:
        modes.append("reverse")
    if not modes:
        raise ValueError(
            f"there is nothing to check with check_forward_ad=False and check_backward_ad=False{at_line(user_line())}"
        )
    return tuple(modes)


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple([held(y) for y in x]) if isinstance(x, tuple | list) else (held(x),)


def _outputs(out: Any, func: Function, what: str) -> list[Tensor]:
    found = [x for x in tree.flatten(out)[0] if isinstance(x, Tensor) and x.requires_grad and is_inexact(x.dtype)]
    if not found:
        raise ValueError(
            f"{what} found no tensor that requires a gradient among what {name_of(func)} returned: does it compute "
            f"with its inputs, outside of no_grad()?{at_line(user_line())}"
        )
    return found


def _checked(func: Function, inputs: Any, settings: Settings, raise_exception: bool, what: str) -> bool:
    given = _as_tuple(inputs)
    places = [i for i, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]
    if not places:
        raise ValueError(
            f"{what} needs at least one input that requires a gradient; create it with requires_grad=True"
            + at_line(user_line())
        )
    warn_of_small_step(settings.eps, [np.asarray(given[i].array) for i in places], name_of(func), 3)
    leaves = [Tensor.of(np.array(given[i].array)).requires_grad_() for i in places]
    return _report(func, given, places, leaves, settings, what).passed(what, raise_exception, stacklevel=3)


def _report(
    func: Function, given: tuple[Any, ...], places: Sequence[int], leaves: list[Tensor], settings: Settings, what: str
) -> Report:
    args = list(given)
    for place, leaf in zip(places, leaves, strict=True):
        args[place] = leaf

    def call() -> list[Tensor]:
        with enable_grad():
            return _outputs(func(*args), func, what)

    name = name_of(func)
    first, again = call(), call()
    gap = _gap(first, again)
    if not gap <= settings.nondet_tol:
        text = f"called twice at the same point, it gives values that differ by {gap:.3g}: does it use random numbers?"
        return Report(name, (Failure("determinism", (), text, np.nan, np.nan),), (), ())
    with noting_operands(functions_as_programs=True) as notes:
        outputs = call()
    try:
        program, values = program_of(outputs, leaves, notes)
    except NoProgram as reason:
        raise ValueError(
            f"{what} runs the operations of {name} once more, which is impossible because of this: {reason}. Check the "
            f"function without it{at_line(user_line())}"
        ) from None
    arrays = [np.asarray(x.array if isinstance(x, Tensor) else x)[()] for x in values]
    active = tuple(i < len(leaves) for i in range(len(arrays)))
    names = ["result"] if len(outputs) == 1 else [f"result {i}" for i in range(len(outputs))]
    try:
        report = check_program(program, arrays, active, settings, out_names=names)
    except MissingRule:
        if settings.modes != ("forward", "reverse"):
            raise
        # What cannot be traced, in a Function, has no forward mode.
        report = check_program(program, arrays, active, settings._replace(modes=("reverse",)), out_names=names)
    report = report._replace(name=name)
    if not report.failures and "reverse" in settings.modes:
        failure = _compared(first, leaves, program, arrays, active)
        if failure is not None:
            report = report._replace(failures=(failure,))
    return report


def _gap(xs: Sequence[Tensor], ys: Sequence[Tensor]) -> float:
    if [x.array_type for x in xs] != [y.array_type for y in ys]:
        return float("inf")
    a, b = coordinates([x.array for x in xs]), coordinates([y.array for y in ys])
    return 0.0 if a.tobytes() == b.tobytes() else float(np.max(np.abs(a - b), initial=0))


def _compared(
    outputs: Sequence[Tensor], leaves: Sequence[Tensor], program: Any, arrays: Sequence[Any], active: Any
) -> Failure | None:
    """The failure of `backward` to find what the program of the graph gives, or None."""
    random = np.random.default_rng(0)
    cts = [random.standard_normal(y.shape).astype(y.dtype)[()] for y in outputs]
    found = grad(outputs, leaves, [Tensor.of(ct) for ct in cts], allow_unused=True, materialize_grads=True)
    whole = with_pullback(program, active, f"grad({program.name})")
    results = iter(whole.program(*arrays, *compress(cts, whole.out_active))[len(outputs) :])
    expected = [
        next(results) if g else np.zeros(x.shape, x.dtype) for g, x in zip(whole.in_active, leaves, strict=True)
    ]
    a, b = coordinates([x.array for x in found if x is not None]), coordinates(expected)
    units = max(rounding_unit(x.dtype) for x in leaves)
    worst = int(np.argmax(np.abs(a - b))) if a.size else 0
    if a.size and not abs(a[worst] - b[worst]) <= _SAME * units * max(float(np.max(np.abs(b))), 1e-300):
        text = f"backward gives {a[worst]:.9g} where the derivative of the recorded operations is {b[worst]:.9g}"
        return Failure("value", ("reverse",), text, float(a[worst]), float(b[worst]), "is a hook at work?")
    return None
