"""Distribution: what all distributions share, from parameters with constraints, a density and a sampler.

A family states a table of its parameters, `arg_constraints`, and formulas that take them in this order: `_log_prob`,
`_mean`, `_entropy` and so on.  The base class reads the parameters, brings them into one dtype, checks them, and gives
results their shapes.  Parameters stay what was given: a parameter of a module is read when it is used, so a
distribution that is made once follows what it is trained to.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ...api.derivatives import stop_gradient
from ...autograd import Tensor, tensor
from ...base.cell import Cell, concrete, read
from ...base.source import at_line, user_line
from ...core.trace import current_builder
from ...core.types import Shape, is_inexact
from ..functional.arguments import described, shape_of
from ..random import key_of, open_unit
from .constraints import Constraint, real, unit_interval
from .numbers import as_parameter, compute, is_known, is_number, operands, sizes_of

__all__ = ["Distribution"]


@dataclasses.dataclass(eq=False, repr=False, init=False)
class Distribution:
    """Base class of distributions.

    Distributions are containers: they pass through `jit`, `vmap` and the like as arguments and results.  A family of
    your own states its shapes here, as in torch, and defines `log_prob`, `sample` or `rsample`, and what else it has.

    Args:
        batch_shape: the shape of a batch of distributions.
        event_shape: the shape of one value.
        validate_args: False to leave parameters and values unchecked.

    Attributes:
        arg_constraints: the parameters, each with the set that it lies in.
        has_rsample: whether samples have derivatives with respect to the parameters.
        has_enumerate_support: whether all values can be listed.
    """

    arg_constraints: ClassVar[Mapping[str, Constraint]] = {}
    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False
    _event_dim: ClassVar[int] = 0
    _support: ClassVar[Constraint] = real

    def __getattr__(self, name: str) -> Any:
        hint = _OTHERWISE.get(name, "")
        raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}{at_line(user_line())}")

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._shapes = (sizes_of(batch_shape, type(self).__name__), sizes_of(event_shape, type(self).__name__))
        self._validate_args = validate_args is not False

    def _set(self, validate_args: bool | None, **parameters: Any) -> None:
        """Keep the parameters that were given, and check them."""
        self._validate_args = validate_args is not False
        for name, x in parameters.items():
            setattr(self, name, as_parameter(x, f"{name.lstrip('_')} of {type(self).__name__}"))
        if self._validate_args:
            self._check_parameters()

    # Parameters

    def _given(self) -> dict[str, Any]:
        """The parameters as they were given, by name."""
        held = vars(self)
        names = ((name, self._kept(name)) for name in self.arg_constraints)
        return {name: held[kept] for name, kept in names if kept in held}

    def _kept(self, name: str) -> str:
        """The attribute that keeps a parameter: its name, unless that may have to be computed."""
        return name if name in vars(self) else f"_{name}"

    def _parameters(self, what: str = "") -> list[Any]:
        """What a formula takes after the value: by default, the parameters."""
        return [getattr(self, name) for name in self.arg_constraints]

    def _check_parameters(self) -> None:
        of = type(self).__name__
        for name, x in self._given().items():
            constraint, shape = self.arg_constraints[name], shape_of(x)
            if len(shape) < constraint.event_dim:
                raise ValueError(
                    f"{name} of {of} must have at least {constraint.event_dim} axes, but is {described(read(x))}"
                    + at_line(user_line())
                )
            if is_known(x):
                self._check(constraint, x, f"{name} of {of}")
        _ = self.batch_shape

    def _check(self, constraint: Constraint, x: Any, what: str) -> None:
        """Raise unless an array, whose elements are known, lies in a set.

        Raises:
            ValueError: it does not.
        """
        values = np.asarray(concrete(x))
        with np.errstate(all="ignore"):
            inside = np.asarray(concrete(constraint.check(values)))
        if not inside.all():
            place = tuple(int(i) for i in np.argwhere(~inside)[0])
            where = f"{what.partition(' ')[0]}[{', '.join(map(str, place))}]" if place else "it"
            event = values.shape[values.ndim - constraint.event_dim :]
            fits = np.broadcast_shapes(inside.shape, values.shape[: values.ndim - len(event)]) == inside.shape
            found = np.broadcast_to(values, (*inside.shape, *event))[place] if fits else values
            raise ValueError(
                f"{what} must be {constraint!r}, but {where} is {found}; validate_args=False does not check"
                + at_line(user_line())
            )

    # Shapes

    @property
    def batch_shape(self) -> Shape:
        """The shape of the parameters, without the axes of one event: how many distributions these are."""
        if "_shapes" in vars(self):
            return self._shapes[0]
        shapes = {
            name: shape[: len(shape) - self.arg_constraints[name].event_dim]
            for name, x in self._given().items()
            for shape in [shape_of(x)]
        }
        try:
            return np.broadcast_shapes(*shapes.values())
        except ValueError:
            listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ValueError(
                f"parameters of {type(self).__name__} must have shapes that broadcast, not {listed}"
                + at_line(user_line())
            ) from None

    @property
    def event_shape(self) -> Shape:
        """The shape of one value; () for numbers."""
        return self._shapes[1] if "_shapes" in vars(self) else ()

    @property
    def support(self) -> Constraint:
        """The set of values."""
        return self._support

    def _extended_shape(self, sample_shape: Shape) -> Shape:
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution for a larger batch, to whose shape the parameters are broadcast.

        Example:
            >>> from ftrans.nn import distributions
            >>> distributions.Normal(0.0, 1.0).expand((2, 3)).batch_shape
            (2, 3)
        """
        shape = sizes_of(batch_shape, f"{type(self).__name__}.expand")
        new = copy.copy(self)
        given = self._given()
        # Numbers of Python take any shape, but one parameter must have it.
        if all(map(is_number, given.values())):
            name, x = given.popitem()
            given = {name: np.float32(x)}
        for name, x in given.items():
            event = shape_of(x)[len(shape_of(x)) - self.arg_constraints[name].event_dim :]
            if shape_of(x) != (*shape, *event) and not is_number(x):
                setattr(new, self._kept(name), _broadcast(x, (*shape, *event), name))
        return new

    # Values

    def _operands(self, what: str = "", *values: Any) -> list[Any]:
        return operands([*values, *self._parameters(what)])

    def _checked_value(self, value: Any, what: str) -> Any:
        value = as_parameter(value, f"the value of {type(self).__name__}.{what}")
        shape, event = shape_of(value), self.event_shape
        if shape[len(shape) - len(event) :] != event and self._validate_args:
            raise ValueError(
                f"{type(self).__name__}.{what} takes values of shape {event}, in the last axes, but was given "
                f"{described(read(value))}{at_line(user_line())}"
            )
        try:
            np.broadcast_shapes(shape[: len(shape) - len(event)], self.batch_shape)
        except ValueError:
            raise ValueError(
                f"{type(self).__name__}.{what} was given {described(read(value))}, which does not broadcast with the "
                f"batch of shape {self.batch_shape}{at_line(user_line())}"
            ) from None
        return value

    def _of_value(self, what: str, value: Any, in_support: bool) -> Any:
        """A formula for each value."""
        formula = self._formula(what)
        value = self._checked_value(value, what)
        if in_support and self._validate_args and is_known(value) and self.support.is_known():
            self._check(self.support, value, f"value of {type(self).__name__}.{what}")
        shape = shape_of(value)
        batch = np.broadcast_shapes(shape[: len(shape) - len(self.event_shape)], self.batch_shape)
        return compute(lambda *xs: _result(formula(*xs), batch, xs[0].dtype), self._operands(what, value))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at values.

        Args:
            value: values, of shape `(..., *batch_shape, *event_shape)`, or what broadcasts to it.

        Returns:
            An array of shape `(..., *batch_shape)`.

        Raises:
            ValueError: a value is outside of the support, or does not fit the shapes.

        Example:
            >>> from ftrans.nn import distributions
            >>> float(distributions.Exponential(2.0).log_prob(0.0).round(6))
            0.693147
        """
        return self._of_value("log_prob", value, True)

    def prob(self, value: Any) -> Any:
        """The density, or the probability, at values; as `log_prob`."""
        return np.exp(self.log_prob(value))

    def cdf(self, value: Any) -> Any:
        """The probability of what is at most `value`."""
        return self._of_value("cdf", value, True)

    def icdf(self, value: Any) -> Any:
        """The quantiles for probabilities: the inverse of `cdf`."""
        value = as_parameter(value, f"the value of {type(self).__name__}.icdf")
        if self._validate_args and is_known(value):
            self._check(unit_interval, value, f"value of {type(self).__name__}.icdf")
        return self._of_value("icdf", value, False)

    def _formula(self, what: str) -> Any:
        formula = getattr(self, f"_{what}", None)
        if formula is None:
            raise NotImplementedError(
                f"{type(self).__name__} has no {what}: no closed form is known{_instead(what)}{at_line(user_line())}"
            )
        return formula

    # What follows from parameters alone

    def _of_parameters(self, what: str, event: Shape) -> Any:
        formula, batch = self._formula(what), self.batch_shape
        shape = (*batch, *event)
        return compute(lambda *xs: _result(formula(*xs), shape, xs[0].dtype), self._operands(what))

    @property
    def mean(self) -> Any:
        """The mean, of shape `(*batch_shape, *event_shape)`."""
        return self._of_parameters("mean", self.event_shape)

    @property
    def mode(self) -> Any:
        """The most likely value."""
        return self._of_parameters("mode", self.event_shape)

    @property
    def variance(self) -> Any:
        """The variance of each element."""
        return self._of_parameters("variance", self.event_shape)

    @property
    def stddev(self) -> Any:
        """The standard deviation of each element."""
        return np.sqrt(self.variance)

    def entropy(self) -> Any:
        """The entropy in nats, of shape `batch_shape`."""
        return self._of_parameters("entropy", ())

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return np.exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values, along a new first axis.

        Args:
            expand: whether to repeat them for each distribution of the batch.
        """
        values = self._formula("values")()
        shape = (len(values), *((1,) * len(self.batch_shape)), *self.event_shape)
        values = values.reshape(shape)
        return np.broadcast_to(values, (len(values), *self.batch_shape, *self.event_shape)) if expand else values

    # Samples

    def rsample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        """Random values that have derivatives with respect to the parameters.

        A value is a function of the parameters and of numbers that do not depend on them: mostly the inverse of the
        distribution function (whose derivatives are implicit; Figurnov, Mohamed and Mnih, 2018).

        Args:
            sample_shape: how many to draw, as a shape.
            rng: source of random numbers: a key, `nn.random.key(0)`, or an `nn.RngState`.  It may be left out where
                nothing is transformed or compiled: then the generator that `nn.manual_seed` seeds gives a key.

        Returns:
            An array of shape `(*sample_shape, *batch_shape, *event_shape)`, in the dtype of the parameters (float32,
            if they are numbers of Python).

        Raises:
            NotImplementedError: values are discrete, or have no known derivative.
            TypeError: `rng` is missing where a function is transformed or compiled.

        Example:
            >>> import ftrans as ft
            >>> from ftrans.nn import distributions, random
            >>> def draw(scale):
            ...     return distributions.Gamma(2.0, 1.0 / scale).rsample(rng=random.key(0))
            >>> abs(float(ft.grad(draw)(1.0) - draw(1.0))) < 1e-6
            True
        """
        if not self.has_rsample:
            raise NotImplementedError(
                f"samples of {type(self).__name__} have no derivatives with respect to its parameters; draw them by "
                f"sample, and weigh losses by log_prob of them (REINFORCE){at_line(user_line())}"
            )
        return self._drawn("rsample", sample_shape, rng)

    def sample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        """Random values, as constants: without derivatives.  Arguments and result as for `rsample`.

        Example:
            >>> from ftrans.nn import distributions, random
            >>> distributions.Categorical([0.5, 0.0, 0.5]).sample((4,), rng=random.key(1))
            array([2, 0, 2, 0])
        """
        plain = self._of_arrays()
        if plain is not None:
            return tensor(plain._drawn("sample", sample_shape, rng))
        return stop_gradient(self._drawn("sample", sample_shape, rng))

    def _of_arrays(self) -> Distribution | None:
        """The distribution with arrays in place of tensors; None if there are none, or if operations are traced."""
        given = self._given()
        tensors = {name: x for name, x in given.items() if isinstance(read(x), Tensor)}
        if not tensors or current_builder() is not None:
            return None
        new = copy.copy(self)
        for name, x in tensors.items():
            setattr(new, self._kept(name), concrete(x))
        return new

    def _drawn(self, what: str, sample_shape: Any, rng: Any) -> Any:
        what = f"{type(self).__name__}.{what}"
        shape = self._extended_shape(sizes_of(sample_shape, what))
        key = key_of(rng, what, [*self._given().values()])
        xs = operands(self._parameters(), np.float32)
        return compute(lambda key, *xs: self._draw(key, shape, *xs), [key, *xs])

    def _draw(self, key: Any, shape: Shape, *parameters: Any) -> Any:
        """Values of a shape from a key: the quantiles of uniform numbers, unless a family states another way."""
        unit = open_unit(key, shape, parameters[0].dtype)
        return self._formula("icdf")(unit, *parameters)

    def __repr__(self) -> str:
        shown = [f"{name}: {x if is_number(x) else described(concrete(x))}" for name, x in self._given().items()]
        return f"{type(self).__name__}({', '.join(shown)})"


# What is written in place of what torch also has.
_OTHERWISE = {
    "sample_n": "; write sample((n,))",
    "rsample_n": "; write rsample((n,))",
    "set_default_validate_args": "; give validate_args=False to the distributions that are to be unchecked",
    "with_cache": ", since nothing is cached",
}


def _instead(what: str) -> str:
    if what in ("cdf", "icdf"):
        return "; compare with the share of samples that are smaller"
    return "; -d.log_prob(d.sample((1000,))).mean(0) estimates it" if what == "entropy" else "; samples estimate it"


def _broadcast(x: Any, shape: Shape, name: str) -> Any:
    """A parameter for a larger batch.

    Raises:
        ValueError: its shape does not broadcast to that of the batch.
    """
    try:
        return np.broadcast_to(x.read() if isinstance(x, Cell) else x, shape)
    except ValueError:
        raise ValueError(
            f"{name} of shape {shape_of(x)} can not be expanded to {shape}: only axes of size 1, and new ones in front,"
            f" are repeated{at_line(user_line())}"
        ) from None


def _result(x: Any, shape: Shape, dtype: Any) -> Any:
    """The result of a formula in its shape, and in the dtype of the operands unless it is an integer."""
    x = x.astype(dtype) if x.dtype != dtype and is_inexact(x.dtype) else x
    return x if shape_of(x) == shape else np.broadcast_to(x, shape)
