"""Tensors of random numbers, and tensors that are filled with them.

They come from the generator that `manual_seed` seeds, which also gives modules their initial values, or from one that
is passed as `generator=`, such as `numpy.random.default_rng(0)`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import randomness
from ..base.source import at_line, user_line
from ..core.trace import current_builder
from .changes import change
from .creation import leaf, sizes
from .default_dtype import get_default_dtype
from .operations import PLACE, node_name
from .tensor import Tensor, held
from .torch_methods.kinds import require_host

Generator = np.random.Generator


def manual_seed(seed: int) -> Generator:
    """Seed the default generator of random numbers, as `ftrans.nn.manual_seed` does.

    Args:
        seed: a non-negative integer; the same seed gives the same numbers.

    Returns:
        The new default generator.

    Example:
        >>> import ftrans as ft
        >>> first = ft.autograd.randn(2, generator=ft.autograd.manual_seed(0))
        >>> second = ft.autograd.randn(2, generator=ft.autograd.manual_seed(0))
        >>> bool((first == second).all())
        True
    """
    randomness.manual_seed(seed)
    return randomness.generator()


def default_generator() -> Generator:
    """The default generator of random numbers."""
    return randomness.generator()


def _drawn_from(generator: Generator | None, device: Any) -> Generator:
    """The generator to draw from.

    Raises:
        TypeError: a program is traced that is compiled, and would draw the same numbers whenever it runs.
    """
    require_host(device)
    builder = current_builder()
    if builder is not None and builder.is_compiled():
        raise TypeError(
            "random numbers of ftrans.autograd are drawn while the function is traced, so that the compiled program "
            "would have the same ones whenever it runs; give the module a stream, self.rng = nn.RngState(), and write "
            "nn.random.normal(self.rng.next_key(), shape), or uniform, bernoulli or categorical" + at_line(user_line())
        )
    return generator or default_generator()


def rand(
    *shape: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """A tensor of random numbers from the uniform distribution on [0, 1).

    Args:
        shape: shape of the tensor.
        generator: the source of random numbers, for instance `numpy.random.default_rng(0)`; by default the one that
            `manual_seed` seeds.
        dtype: dtype of the tensor.
        requires_grad: whether `backward` accumulates a gradient in its `grad`.
        device: "cpu".

    Raises:
        TypeError: the numbers would be a constant of a program that is compiled.
    """
    found = _drawn_from(generator, device).random(sizes(shape))
    return leaf(np.asarray(found, dtype or get_default_dtype()), requires_grad)


def randn(
    *shape: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """A tensor of random numbers from the standard normal distribution; arguments as for `rand`."""
    found = _drawn_from(generator, device).standard_normal(sizes(shape))
    return leaf(np.asarray(found, dtype or get_default_dtype()), requires_grad)


def randint(
    low: int,
    high: Any = None,
    size: Any = (),
    generator: Generator | None = None,
    dtype: Any = np.int64,
    *,
    device: Any = None,
) -> Tensor:
    """A tensor of random integers from `low` (inclusive) to `high` (exclusive); from zero as `randint(high, size)`."""
    if high is None or isinstance(high, tuple | list):
        low, high, size = 0, low, size if high is None else high
    return leaf(np.asarray(_drawn_from(generator, device).integers(low, high, size), dtype), False)


def randperm(count: int, generator: Generator | None = None, *, device: Any = None) -> Tensor:
    """A random permutation of the integers from 0 to `count - 1`."""
    return leaf(_drawn_from(generator, device).permutation(count), False)


def rand_like(x: Any, generator: Generator | None = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`rand` with the shape of `x`, and its dtype by default."""
    return rand(tuple(x.shape), generator=generator, dtype=dtype or x.dtype, requires_grad=requires_grad)


def randn_like(x: Any, generator: Generator | None = None, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """`randn` with the shape of `x`, and its dtype by default."""
    return randn(tuple(x.shape), generator=generator, dtype=dtype or x.dtype, requires_grad=requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None) -> Tensor:
    """Random numbers from normal distributions, of these means and standard deviations, or of a shape."""
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std)) if size is None else size
    return mean + std * randn(shape, generator=generator)


def bernoulli(p: Any, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probabilities `p`, and zeros."""
    return (rand(tuple(p.shape), generator=generator) < p).astype(p.dtype)


def multinomial(p: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """Indices along the last axis, drawn with probabilities in proportion to `p`.

    Args:
        p: nonnegative numbers, a vector or the rows of a matrix.
        num_samples: how many indices to draw of each row.
        replacement: whether an index may be drawn again.
        generator: the source of random numbers.
    """
    p = held(p)
    weights, source = np.asarray(p.array if isinstance(p, Tensor) else p, float), _drawn_from(generator, None)
    rows = np.atleast_2d(weights / weights.sum(-1, keepdims=True))
    drawn = np.stack([source.choice(row.size, num_samples, replacement, row) for row in rows])
    return leaf(np.reshape(drawn, (*weights.shape[:-1], num_samples)), False)


# Tensors that are filled


def _filling(name: str, draw: Callable[..., Any]) -> Callable[..., Tensor]:
    """A method that fills a tensor with numbers of a distribution.

    Args:
        name: its name.
        draw: a function of a generator, the tensor and the parameters of the distribution.
    """
    node = node_name(name)

    def fill(self: Tensor, *args: Any, generator: Generator | None = None, **kwargs: Any) -> Tensor:
        numbers = np.asarray(draw(_drawn_from(generator, None), self, *args, **kwargs)).astype(self.dtype)
        change(operator.setitem, self, (PLACE, Ellipsis, numbers), {}, node)
        return self

    # Python's errors about arguments say the name.
    for function in (fill, draw):
        function.__name__ = function.__qualname__ = name
    fill.__doc__ = f"{draw.__doc__}  In place; `generator` is the source of random numbers."
    return fill


def _uniform(generator: Generator, x: Tensor, low: float = 0.0, high: float = 1.0) -> Any:
    """Fill with numbers drawn uniformly from `[low, high)`."""
    return generator.uniform(low, high, x.shape)


def _normal(generator: Generator, x: Tensor, mean: float = 0.0, std: float = 1.0) -> Any:
    """Fill with normal numbers."""
    return generator.normal(mean, std, x.shape)


def _log_normal(generator: Generator, x: Tensor, mean: float = 1.0, std: float = 2.0) -> Any:
    """Fill with numbers whose logarithms are normal."""
    return generator.lognormal(mean, std, x.shape)


def _exponential(generator: Generator, x: Tensor, lambd: float = 1.0) -> Any:
    """Fill with exponentially distributed numbers, of a rate."""
    return generator.exponential(1 / lambd, x.shape)


def _cauchy(generator: Generator, x: Tensor, median: float = 0.0, sigma: float = 1.0) -> Any:
    """Fill with numbers of a Cauchy distribution."""
    return median + sigma * generator.standard_cauchy(x.shape)


def _geometric(generator: Generator, x: Tensor, p: float) -> Any:
    """Fill with the number of trials until the first success, of probability `p`."""
    return generator.geometric(p, x.shape)


def _bernoulli(generator: Generator, x: Tensor, p: Any = 0.5) -> Any:
    """Fill with ones of probability `p`, a number or an array, and zeros."""
    p = held(p)
    return generator.random(x.shape) < (p.array if isinstance(p, Tensor) else p)


def _random(generator: Generator, x: Tensor, low: int = 0, high: int | None = None) -> Any:
    """Fill with integers from `low` to `high - 1`, as `random_(high)` from 0; by default all that the dtype holds."""
    if high is None and low:
        low, high = 0, low
    if high is None:
        high = 2 ** (np.finfo(x.dtype).nmant + 1) + 1 if x.dtype.kind == "f" else int(np.iinfo(x.dtype).max) + 1
    return generator.integers(low, high, x.shape, np.uint64 if high > 2**63 else np.int64)


def install_random_methods() -> None:
    """Give `Tensor` its methods that draw random numbers."""
    draws: dict[str, Callable[..., Any]] = {
        "uniform_": _uniform, "normal_": _normal, "log_normal_": _log_normal, "exponential_": _exponential,
        "cauchy_": _cauchy, "geometric_": _geometric, "bernoulli_": _bernoulli, "random_": _random,
    }  # fmt: skip
    methods = {name: _filling(name, draw) for name, draw in draws.items()}
    for name, method in (methods | {"bernoulli": bernoulli, "multinomial": multinomial}).items():
        setattr(Tensor, name, method)
