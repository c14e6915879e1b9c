"""What distributions share: how methods read their arguments, where the support ends, and what follows from what.

A distribution states formulas in its standard form, inside of its support.  Outside of it densities are 0 and so are
their derivatives, because formulas are never computed there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.stats

from ...base.source import at_line, user_line
from ...core.types import is_inexact
from ...numpy.dispatch import public
from ...numpy.promotion import asarray, cast, combined_dtype, has_tracer, is_number, kind_of, value_in_hand
from ...ops.elementwise import stop_gradient
from .frozen import Frozen
from .moments import ENTROPIES, MEANS, VARIANCES


class Distribution:
    """A distribution of `scipy.stats`, whose methods take arrays and traced values alike.

    Results have the floating-point dtype of the arguments: float32 is kept.  Without traced values SciPy computes them.

    Attributes:
        name: its name in `scipy.stats`.
        shapes: names of its shape parameters.
        typical: values of these for which it is defined.
        methods: the methods that there may be, each with the formula that it needs.
        variable: what SciPy calls the first argument of these, but for quantiles.
        placing: the further parameters that all distributions of the kind have, and their defaults.
    """

    shapes: ClassVar[tuple[str, ...]] = ()
    typical: ClassVar[tuple[float, ...]] = ()
    methods: ClassVar[dict[str, str]] = {}
    variable: ClassVar[str] = "x"
    placing: ClassVar[dict[str, float]] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        for method, formula in self.methods.items():
            if hasattr(type(self), formula):
                setattr(self, method, self._public(method))
        for method, is_known in self._of_parameters().items():
            if is_known:
                setattr(self, method, self._public_of_parameters(method))

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with its parameters."""
        return Frozen(self, args, kwargs)

    def _of_parameters(self) -> dict[str, bool]:
        """The methods that take parameters only, and whether there is a formula for them."""
        has_variance = self.name in VARIANCES
        return {"rvs": True, "mean": self.name in MEANS, "var": has_variance, "std": has_variance}

    def _public(self, method: str) -> Callable[..., Any]:
        """A method that is SciPy's on arrays, and the formula on traced values."""

        def plain(*args: Any, **kwargs: Any) -> Any:
            found = getattr(getattr(scipy.stats, self.name), method)(*args, **kwargs)
            return np.asarray(found).astype(floating_dtype([*args, *kwargs.values()]), copy=False)[()]

        def traced(*args: Any, **kwargs: Any) -> Any:
            return getattr(self, f"_{method}")(*self._read(method, args, kwargs))

        plain.__name__ = method
        traced.__doc__ = f"`scipy.stats.{self.name}.{method}` on arrays and on traced values."
        return public(plain, traced)

    def _public_of_parameters(self, method: str) -> Callable[..., Any]:
        """A method that takes no variable, nor keeps a dtype: SciPy's on plain parameters."""

        def plain(*args: Any, **kwargs: Any) -> Any:
            return getattr(getattr(scipy.stats, self.name), method)(*args, **kwargs)

        def traced(*args: Any, **kwargs: Any) -> Any:
            return getattr(self, f"_{method}")(*args, **kwargs)

        plain.__name__ = method
        traced.__doc__ = f"`scipy.stats.{self.name}.{method}` of plain and of traced parameters."
        return public(plain, traced)

    def __getattr__(self, name: str) -> Any:
        have = ", ".join(m for m, function in vars(self).items() if callable(function))
        raise AttributeError(
            f"{self!r} has no {name!r}; it has {have}. For plain arrays there is scipy.stats.{self.name}"
            f"{at_line(user_line())}"
        )

    def __repr__(self) -> str:
        return f"ftrans.scipy.stats.{self.name}"

    def _read(self, method: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The variable, the shape parameters and the place, as traced values of one floating-point dtype."""
        names = [*self.shapes, *self.placing]
        variable = "q" if method in ("ppf", "isf") else self.variable
        if not args and variable in kwargs:
            args = (kwargs[variable],)
            kwargs = {key: x for key, x in kwargs.items() if key != variable}
        if not 1 <= len(args) <= 1 + len(names):
            raise TypeError(
                f"{self.name}.{method} takes the variable {variable} and at most {len(names)} parameters"
                f" ({', '.join(names)}); {len(args)} positional arguments were given{at_line(user_line())}"
            )
        given = dict(zip(names, args[1:], strict=False))
        for key in kwargs:
            if key not in names or key in given:
                problem = "was given twice" if key in given else f"is none of its parameters {', '.join(names)}"
                raise TypeError(f"{self.name}.{method}: {key!r} {problem}{at_line(user_line())}")
        given = {**self.placing, **given, **kwargs}
        for key in self.shapes:
            if key not in given:
                raise TypeError(f"{self.name}.{method} lacks its parameter {key!r}{at_line(user_line())}")
        operands = [asarray(x) for x in (args[0], *(given[n] for n in names))]
        dtype = floating_dtype(operands)
        return [cast(x, dtype) for x in operands]

    def _parameters(self, method: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, list[Any], list[Any]]:
        """Whether parameters are valid, the shape parameters (valid ones), and where the distribution is placed."""
        params = self._read(method, (0.0, *args), kwargs)[1:]
        count = len(self.shapes)
        valid, shapes = self._checked(params[:count])
        return valid, shapes, params[count:]

    def _mean(self, *args: Any, **kwargs: Any) -> Any:
        valid, shapes, (loc, *scales) = self._parameters("mean", args, kwargs)
        return np.where(valid, loc + math.prod(scales) * MEANS[self.name](*shapes), math.nan)

    def _var(self, *args: Any, **kwargs: Any) -> Any:
        valid, shapes, (_, *scales) = self._parameters("var", args, kwargs)
        return np.where(valid, math.prod(scales) ** 2 * VARIANCES[self.name](*shapes), math.nan)

    def _std(self, *args: Any, **kwargs: Any) -> Any:
        return np.sqrt(self._var(*args, **kwargs))

    def _rvs(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self.name}.rvs draws whole numbers, which have no derivative with respect to parameters; draw them with"
            f" plain parameters, and weigh them by {self.name}.logpmf{at_line(user_line())}"
        )

    def _valid(self, *shapes: Any) -> Any:
        """Whether the shape parameters are such as the distribution is defined for: by default, all positive."""
        valid: Any = True
        for s in shapes:
            valid = valid & (s > 0)
        return valid

    def _checked(self, shapes: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Whether the shape parameters are valid, and valid ones in place of those that are not."""
        valid = self._valid(*shapes)
        return valid, [np.where(valid, s, t) for s, t in zip(shapes, self.typical, strict=True)]


def floating_dtype(xs: Sequence[Any]) -> np.dtype[Any]:
    """The dtype of the result: that of the floating-point arrays among the arguments."""
    kinds = [kind_of(x if is_number(x) or hasattr(x, "dtype") else np.asarray(x)) for x in xs]
    dtypes = [k for k in kinds if isinstance(k, np.dtype) and is_inexact(k)]
    return combined_dtype(*dtypes) if dtypes else np.dtype(float)


def log_of_share(p: Any, rest: Any) -> Any:
    """The logarithm of a probability, from the smaller one of it and its complement."""
    is_small = p < 0.5
    small, complement = np.where(is_small, p, 0.5), np.where(is_small, 0.5, rest)
    return np.where(is_small, np.log(small), np.log1p(-complement))


def _standard(x: Any, loc: Any, scale: Any) -> Any:
    """`x` in standard form; an infinite one stays what it is, and its slopes are 0."""
    is_infinite = np.isinf(x)
    return np.where(is_infinite, x, (np.where(is_infinite, 0.0, x) - loc) / scale)


class Continuous(Distribution):
    """A distribution with a density.

    Attributes:
        low, high: the ends of the support in standard form.
        inner: a point inside of it.
        is_open: whether the formulas are not for the lower end itself, where the density is 0.
        is_steep: whether the logarithm of the density falls so fast that its slope overflows where the density is 0.
        is_symmetric: whether it is symmetric around 0.

    Example:
        >>> import ftrans as ft
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.norm.logpdf, argnums=(0, 2))(1.0, 0.0, 2.0))
        (np.float64(-0.25), np.float64(-0.375))
    """

    methods: ClassVar[dict[str, str]] = {
        "pdf": "_log_density",
        "logpdf": "_log_density",
        "cdf": "_below",
        "logcdf": "_below",
        "sf": "_below",
        "logsf": "_below",
        "ppf": "_quantile",
        "isf": "_quantile",
    }
    placing: ClassVar[dict[str, float]] = {"loc": 0.0, "scale": 1.0}
    low: ClassVar[float] = -math.inf
    high: ClassVar[float] = math.inf
    inner: ClassVar[float] = 0.5
    is_open: ClassVar[bool] = False
    is_steep: ClassVar[bool] = False
    is_symmetric: ClassVar[bool] = False

    # Formulas that follow from others unless there are better ones

    def _support(self, *shapes: Any) -> tuple[Any, Any]:
        return self.low, self.high

    def _inner(self, *shapes: Any) -> Any:
        return self.inner

    def _density(self, y: Any, *shapes: Any) -> Any:
        if self.is_steep:
            is_vanishing = stop_gradient(asarray(self._log_density(y, *shapes))) < -800
            y = np.where(is_vanishing, self._inner(*shapes), y)
            return np.where(is_vanishing, 0.0, np.exp(self._log_density(y, *shapes)))
        return np.exp(self._log_density(y, *shapes))

    def _above(self, y: Any, *shapes: Any) -> Any:
        return 1 - self._below(y, *shapes)

    def _log_below(self, y: Any, *shapes: Any) -> Any:
        return log_of_share(self._below(y, *shapes), self._above(y, *shapes))

    def _log_above(self, y: Any, *shapes: Any) -> Any:
        return log_of_share(self._above(y, *shapes), self._below(y, *shapes))

    def _quantile_above(self, q: Any, *shapes: Any) -> Any:
        return -self._quantile(q, *shapes) if self.is_symmetric else self._quantile(1 - q, *shapes)

    # The methods

    def _logpdf(self, x: Any, *params: Any) -> Any:
        return self._of_density(
            x, params, lambda y, scale, *shapes: self._log_density(y, *shapes) - np.log(scale), True
        )

    def _pdf(self, x: Any, *params: Any) -> Any:
        return self._of_density(x, params, lambda y, scale, *shapes: self._density(y, *shapes) / scale, False)

    def _of_density(self, x: Any, params: Sequence[Any], formula: Callable[..., Any], is_log: bool) -> Any:
        *shapes, loc, scale = params
        valid, shapes = self._checked(shapes)
        valid = valid & (scale > 0)
        scale = np.where(scale > 0, scale, 1.0)
        y = _standard(x, loc, scale)
        low, high = self._support(*shapes)
        is_outside = ((y <= low) if self.is_open else (y < low)) | (y > high) | np.isinf(y)
        found = formula(np.where(is_outside, self._inner(*shapes), y), scale, *shapes)
        return np.where(valid, np.where(is_outside, -math.inf if is_log else 0.0, found), math.nan)

    def _cdf(self, x: Any, *params: Any) -> Any:
        return self._of_probability(x, params, self._below, 0.0, 1.0)

    def _sf(self, x: Any, *params: Any) -> Any:
        return self._of_probability(x, params, self._above, 1.0, 0.0)

    def _logcdf(self, x: Any, *params: Any) -> Any:
        return self._of_probability(x, params, self._log_below, -math.inf, 0.0)

    def _logsf(self, x: Any, *params: Any) -> Any:
        return self._of_probability(x, params, self._log_above, 0.0, -math.inf)

    def _of_probability(
        self, x: Any, params: Sequence[Any], formula: Callable[..., Any], first: float, last: float
    ) -> Any:
        *shapes, loc, scale = params
        valid, shapes = self._checked(shapes)
        valid = valid & (scale > 0)
        y = _standard(x, loc, np.where(scale > 0, scale, 1.0))
        low, high = self._support(*shapes)
        is_below, is_above = y <= low, y >= high
        found = formula(np.where(is_below | is_above, self._inner(*shapes), y), *shapes)
        return np.where(valid, np.where(is_below, first, np.where(is_above, last, found)), math.nan)

    def _ppf(self, q: Any, *params: Any) -> Any:
        return self._of_quantile(q, params, self._quantile, 0.0)

    def _isf(self, q: Any, *params: Any) -> Any:
        return self._of_quantile(q, params, self._quantile_above, 1.0)

    def _of_quantile(self, q: Any, params: Sequence[Any], formula: Callable[..., Any], first: float) -> Any:
        *shapes, loc, scale = params
        valid, shapes = self._checked(shapes)
        valid = valid & (scale > 0) & (q >= 0) & (q <= 1)

        def end(place: Any) -> Any:
            is_finite = np.isfinite(place)
            return np.where(is_finite, loc + scale * np.where(is_finite, place, 0.0), place)

        low, high = self._support(*shapes)
        is_between = (q > 0) & (q < 1)
        found = loc + scale * formula(np.where(is_between, q, 0.5), *shapes)
        return np.where(valid, np.where(is_between, found, np.where(q == first, end(low), end(high))), math.nan)

    def _of_parameters(self) -> dict[str, bool]:
        has_quantiles = hasattr(type(self), "_quantile")
        more = {"entropy": self.name in ENTROPIES, "median": has_quantiles, "interval": has_quantiles}
        return super()._of_parameters() | more

    def _entropy(self, *args: Any, **kwargs: Any) -> Any:
        valid, shapes, (_, scale) = self._parameters("entropy", args, kwargs)
        return np.where(valid & (scale > 0), np.log(scale) + ENTROPIES[self.name](*shapes), math.nan)

    def _median(self, *args: Any, **kwargs: Any) -> Any:
        return self._ppf(*self._read("ppf", (0.5, *args), kwargs))

    def _interval(self, confidence: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        below = (1 - asarray(confidence)) / 2
        return tuple(self._ppf(*self._read("ppf", (q, *args), kwargs)) for q in (below, 1 - below))

    def _rvs(self, *args: Any, size: Any = None, random_state: Any = None, **kwargs: Any) -> Any:
        """Standard numbers that SciPy draws, moved and scaled: so they follow `loc` and `scale`."""
        count = len(self.shapes) + 2
        size, args = args[count] if len(args) > count else size, args[:count]
        *_, loc, scale = self._read("rvs", (0.0, *args), kwargs)[1:]
        given = {**dict(zip(self.shapes, args, strict=False)), **kwargs}
        if has_tracer([given[name] for name in self.shapes]):
            raise TypeError(
                f"{self.name}.rvs follows loc and scale, not its shape parameters ({', '.join(self.shapes)}), which are"
                f" traced: write {self.name}.ppf(u, ...) of uniform numbers u = rng.random(size){at_line(user_line())}"
            )
        at_hand = value_in_hand(scale)
        if at_hand is not None and np.any(at_hand < 0):
            raise ValueError(f"{self.name}.rvs takes a positive scale, not {at_hand}{at_line(user_line())}")
        plain = [given[name] for name in self.shapes]
        if size is None:
            size = np.broadcast_shapes(loc.shape, scale.shape, *map(np.shape, plain))
        drawn = getattr(scipy.stats, self.name).rvs(*plain, size=size, random_state=random_state)
        return cast(asarray(drawn), loc.dtype) * scale + loc
