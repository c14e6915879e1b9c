"""sin and cos of float64 arrays for XLA on a CPU, as arithmetic that it vectorizes.

XLA calls the C library for each element, 11 ns on a processor where the arithmetic below takes 3; and again in each
operation that uses the result, in a loop for each array that it saves.

An argument is reduced by multiples of pi/2, with pi/2 in four parts (W. J. Cody and W. Waite, Software Manual for the
Elementary Functions, 1980).  The polynomials are those of FDLIBM (`k_sin.c`, `k_cos.c`, Sun Microsystems 1993), and so
is their use of what the reduced argument leaves behind its last digit.  Results differ from exact ones by at most 0.8
units in the last place; multiples of an angle close to multiples of pi/2 lose no digit.  The parts have 33 bits, so
products of the first three with the number of turns are exact for arguments up to `_LARGEST`, also where a
compiler fuses them with additions.  An array with a larger argument is left to the C library; so are arrays that are
divided over devices, which would have to ask each other for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...base.surroundings import exported_for, is_divided, is_in_loop

# Smaller arrays cost more to hand from operation to operation than is saved.  Outside of loops, a program with as much
# arithmetic as this is also handed to another thread by JAX, which takes about 30 us of a call.
_SMALLEST, _SMALLEST_IN_LOOPS = 4096, 64
_LARGEST = 1e6
# Below this, x is the rounded sine of x.
_TINY = 2.0**-27

_PARTS = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624871116645580e-21, 8.47842766036889956997e-32)
_TWO_OVER_PI = 6.36619772367581382433e-01
_SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


def _reduced(x: Any) -> tuple[Any, Any, Any]:
    """The multiple of pi/2 that is nearest to `x`, what is left, and what is behind the last digit of that."""
    from jax import lax

    first, second, third, fourth = _PARTS
    turns = lax.round(x * _TWO_OVER_PI, lax.RoundingMethod.TO_NEAREST_EVEN)
    a = x - turns * first
    b = a - turns * second
    c = b - turns * third
    # What was lost when b and c were rounded, and the last part.
    rest = ((a - b) - turns * second) + (((b - c) - turns * third) - turns * fourth)
    y = c + rest
    return turns, y, (c - y) + rest


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = c + x * total
    return total


def _of_reduced(y: Any, rest: Any) -> tuple[Any, Any]:
    """Sine and cosine of `y + rest`, for `y` between -pi/4 and pi/4."""
    square = y * y
    cube = square * y
    sine = y - ((square * (0.5 * rest - cube * _polynomial(_SINE[1:], square)) - rest) - cube * _SINE[0])
    half = 0.5 * square
    one_less = 1.0 - half
    tail = square * square * _polynomial(_COSINE, square) - y * rest
    return sine, one_less + (((1.0 - one_less) - half) + tail)


def _turned(x: Any, quarters: int) -> Any:
    """The sine of `x + quarters * pi/2`."""
    from jax import lax

    turns, y, rest = _reduced(x)
    sine, cosine = _of_reduced(y, rest)
    # Of each four quarters, the second and the fourth have the cosine, and the last two the opposite sign.
    half = 0.5 * (turns + quarters)
    value = lax.select(half == lax.floor(half), sine, cosine)
    whole = lax.floor(half)
    return lax.select(0.5 * whole == lax.floor(0.5 * whole), value, -value)


def _sine(x: Any) -> Any:
    from jax import lax

    return lax.select(lax.abs(x) < _TINY, x, _turned(x, 0))


def _cosine(x: Any) -> Any:
    return _turned(x, 1)


def _for_all_arguments(fast: Callable[[Any], Any], exact: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`fast`, and `exact` where it does not hold.

    A loop of one step or none stands for the branch: XLA splits the operations around a loop over threads, and
    not those in a branch.
    """

    def value(x: Any) -> Any:
        from jax import lax

        flat = x.ravel()
        # One product tells: its square is above that of each element, and not a number if one of them is not.
        is_slow = ~(lax.dot(flat, flat) <= _LARGEST**2)
        return lax.while_loop(lambda s: s[0], lambda s: (False & s[0], s[1], exact(s[1])), (is_slow, x, fast(x)))[2]

    return value


@functools.cache
def _functions() -> dict[str, Any]:
    """The functions for JAX, with the derivatives that JAX takes where users differentiate through it."""
    import jax
    from jax import lax

    sine = jax.custom_jvp(jax.jit(_for_all_arguments(_sine, lax.sin)))
    cosine = jax.custom_jvp(jax.jit(_for_all_arguments(_cosine, lax.cos)))
    sine.defjvps(lambda t, _, x: t * cosine(x))
    cosine.defjvps(lambda t, _, x: -t * sine(x))
    return {"sin": sine, "cos": cosine}


def vectorized(name: str) -> Callable[[Any], Any]:
    """The function `name` of `jax.lax`, sin or cos, as arithmetic where that is faster."""

    def call(x: Any) -> Any:
        import jax
        from jax import lax

        smallest = _SMALLEST_IN_LOOPS if is_in_loop() else _SMALLEST
        is_on_cpu = (exported_for() or (jax.default_backend(),)) == ("cpu",)
        is_fast = x.dtype == float and x.size >= smallest and is_on_cpu and not is_divided()
        return _functions()[name](x) if is_fast else getattr(lax, name)(x)

    return call
