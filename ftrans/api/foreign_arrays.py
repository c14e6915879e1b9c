"""Calls of transformed functions with arrays of other libraries among their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from ..base import tree
from ..base.foreign_arrays import ForeignArrays, is_foreign
from ..base.tracebacks import leave_out_frames
from ..base.type_variables import Params, Result


def takes_foreign_arrays(
    function: Callable[Params, Result], returns_function: bool = False
) -> Callable[Params, Result]:
    """A transformed function that also takes arrays of other libraries, and then returns such arrays.

    Args:
        function: raises `ForeignArrays` before it calls anything of the user, where an argument is such an array.
        returns_function: whether its result is a tuple, whose second item is a linear function.
    """

    @functools.wraps(function)
    def taking(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except ForeignArrays:
            if not are_foreign(args, kwargs):
                raise
        except BaseException as error:
            leave_out_frames(error)
            raise
        # Not in the handler, or errors of what follows would have this one as their context.
        return cast(Result, ForeignArrays.take(taking, args, kwargs, returns_function))

    return taking


def returns_linear_function(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """`takes_foreign_arrays` of what returns a tuple whose second item is a linear function."""
    return takes_foreign_arrays(function, returns_function=True)


def are_foreign(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether arrays of other libraries are among arguments."""
    return any([is_foreign(x) for x in tree.flatten((args, kwargs))[0]])
