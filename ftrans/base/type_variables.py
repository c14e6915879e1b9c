"""What the signatures of transformations are written with, so that type checkers know what `grad(f)` takes and returns.

The types are those that the user's function is annotated with: arrays and numbers, of which it is a function on its
face.  That it is called on traced values is nobody's business but ours.
"""

from __future__ import annotations

from typing import Any, ParamSpec, TypeVar, TypeVarTuple

# Arguments of a function: all of them; the first, and those behind it; positional ones.
Params = ParamSpec("Params")
First = TypeVar("First", bound=Any)
Primals = TypeVarTuple("Primals")
# What it returns: the result, and what comes beside it with `has_aux`.
Result = TypeVar("Result")
Aux = TypeVar("Aux")
# A value that is returned in the type that it came in.
Value = TypeVar("Value")
