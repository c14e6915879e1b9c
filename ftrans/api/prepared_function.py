"""A function traced for arguments of certain types, whose sparse derivative is asked for; and its linear operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import tree
from ..base.cell import Eager
from ..base.checksum import checksum
from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..core.witness import concretize
from .call import name_of
from .paths import trace_guarded
from .prepared_inputs import PreparedInputs
from .products import Products
from .sparse_call import SparseDerivative


class PreparedFunction:
    """A function traced for arguments of certain types.

    Attributes:
        derivative: the function, and what is asked for.
        inputs: the arguments that it was traced with.
        traced: the program, whose last outputs are the guards.
        results: structure of the result.
        aux: structure of the auxiliary result.
        active: which inputs of the program are differentiated.

    Args:
        derivative: the function, and what is asked for.
        args: the arguments.
        kwargs: the same by name.
    """

    def __init__(self, derivative: SparseDerivative, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.derivative = derivative
        args, kwargs = derivative.arguments(*args, **kwargs)
        self.inputs = inputs = PreparedInputs(derivative.f, derivative.argnums, args, kwargs, derivative.name)
        found: list[tree.Structure] = []

        def call(tracers: list[Tracer]) -> Any:
            pair = self._pair(inputs.call(args, kwargs, tracers))
            found.extend(tree.flatten(part)[1] for part in pair)
            return pair

        self.traced = trace_guarded(derivative.f, inputs.witnesses(), call)
        if any(isinstance(x, Eager) for x in self.traced.captured):
            raise TypeError(
                f"{name_of(derivative.f)} closes over a tensor, which would be a constant from now on; pass it as an "
                f"argument, or close over its array, x.detach().numpy(){at_line(user_line())}"
            )
        originals = self.traced.builder.captures.originals or {}
        copies = {id(x) for x in self.traced.captured}
        # Arrays that the function made itself are gone, those that it has changed have no one value.
        self._watched = [
            (array, known)
            for number, (array, known) in originals.items()
            if number not in copies and (x := array()) is not None and checksum(x) == known
        ]
        self.results, self.aux = found
        count = inputs.count
        self.active = (True,) * count + (False,) * (len(self.traced.program.inputs) - count)
        derivative.require_differentiable(self.traced.program, inputs.types[:count], self.results)

    def _pair(self, out: Any) -> tuple[Any, Any]:
        """The result and the auxiliary result."""
        if not self.derivative.options.has_aux:
            return out, ()
        if isinstance(out, tuple) and len(out) == 2:
            return out
        raise TypeError(
            f"with has_aux=True, {name_of(self.derivative.f)} must return a pair (result, auxiliary), not "
            f"{type(out).__name__}{at_line(user_line())}"
        )

    def leaves_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arrays of a call, which has to be like that it was traced for.

        Raises:
            ValueError: it is not, or an array that the function closes over has changed.
        """
        for array, known in self._watched:
            x = array()
            if x is not None and checksum(x) != known:
                raise self._changed(x)
        return self.inputs.leaves_of(*self.derivative.arguments(*args, **kwargs))

    def _changed(self, x: Any) -> ValueError:
        return ValueError(
            f"{self.derivative.name} of {name_of(self.derivative.f)} was prepared for the values of an array of shape "
            f"{x.shape} that the function closes over, and they have changed; prepare it again, or pass the array as "
            f"an argument{at_line(user_line())}"
        )

    @property
    def wanted(self) -> int:
        """How many outputs are differentiated."""
        return self.results.num_leaves

    def require_same_path(self, values: Sequence[Any]) -> None:
        """Raise unless the function would have taken the path that it was traced on.

        Args:
            values: the values of its guards.

        Raises:
            ValueError: it would have taken another one.
        """
        for guard, value in zip(self.traced.builder.guards, values, strict=True):
            if isinstance(value, Tracer):
                value = concretize(value, "a prepared derivative compares")
            if not guard.holds_for(np.asarray(value)):
                raise ValueError(
                    f"{self.derivative.name} of {name_of(self.derivative.f)} was prepared for arguments for which "
                    f"Python code in it saw {guard.expected!s}, and sees {np.asarray(value)!s} for these, so that its "
                    f"entries may be others; prepare it again for these arguments, or write numpy.where or ftrans.cond "
                    f"for the choice{at_line(guard.line)}"
                )

    def products(self, leaves: Sequence[Any], is_compiled: bool) -> Products:
        """Products with the matrix at a point."""
        inputs = [np.asarray(x) for x in (*leaves, *self.traced.captured)]
        of_hessian = self.derivative.options.of_hessian
        return Products(self.traced.program, self.active, self.wanted, inputs, of_hessian, is_compiled)

    def operator(self, leaves: Sequence[Any], is_compiled: bool) -> Any:
        """The matrix at a point as a linear operator of SciPy."""
        from scipy.sparse.linalg import LinearOperator

        products = self.products(leaves, is_compiled)
        forward, backward = products.forward, products.backward
        return LinearOperator(
            products.shape, _flat(forward), _flat(backward), matmat=forward, rmatmat=backward, dtype=products.dtype
        )


def _flat(product: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A product for vectors that may be columns."""
    return lambda v: product(np.ravel(v))
