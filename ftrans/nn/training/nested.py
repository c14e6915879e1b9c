"""Dictionaries of dictionaries, lists, numbers and strings, with arrays among them, in a file of arrays by name.

Arrays are stored under the path to them, such as `optimizer.state.0.exp_avg`.  Everything else is a text in JSON, in
which `{"array": name}` stands for an array, and dictionaries and tuples say what they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...base.source import at_line, user_line
from ..modules.module import Module
from .files import TRAINING

# Under this name the metadata of a file hold the text.
LAYOUT = "ftrans.layout"


def is_flat(given: Mapping[str, Any]) -> bool:
    """Whether a dictionary holds nothing but arrays by name, so that a file needs no layout."""
    return all([isinstance(name, str) and hasattr(x, "dtype") for name, x in given.items()])


def taken_apart(given: Mapping[Any, Any]) -> tuple[dict[str, Any], str]:
    """The arrays of a dictionary by name, and a text of all else.

    Raises:
        TypeError: a value is none that a file holds, or a key is no string and no integer.
    """
    arrays: dict[str, Any] = {}

    def layout(x: Any, path: str) -> Any:
        if hasattr(x, "dtype"):
            # Names that begin as those of a training do are not read with those of a model.
            name = f"_{path}" if path.startswith(TRAINING) else path
            while name in arrays:
                name += "_"
            arrays[name] = x
            return {"array": name}
        if isinstance(x, Module):
            x = Module.state_dict(x)
        if isinstance(x, Mapping):
            return {
                "dict": [[_key(key, path), layout(y, f"{path}.{key}" if path else str(key))] for key, y in x.items()]
            }
        if type(x) is list or type(x) is tuple:
            items = [layout(y, f"{path}.{i}") for i, y in enumerate(x)]
            return items if type(x) is list else {"tuple": items}
        if x is None or type(x) in (bool, int, float, str):
            return x
        raise TypeError(
            f"{path} is of type {type(x).__name__}, which a file of arrays does not hold; it holds arrays, modules, "
            f"numbers, strings, None, and dictionaries, lists and tuples of these{at_line(user_line())}"
        )

    text = json.dumps(layout(given, ""))
    return arrays, text


def put_together(arrays: Mapping[str, Any], text: str) -> Any:
    """What `taken_apart` has taken apart."""

    def built(x: Any) -> Any:
        if isinstance(x, list):
            return [built(y) for y in x]
        if not isinstance(x, dict):
            return x
        ((kind, content),) = x.items()
        if kind == "array":
            return arrays[content]
        return tuple(map(built, content)) if kind == "tuple" else {key: built(y) for key, y in content}

    return built(json.loads(text))


def _key(key: Any, path: str) -> str | int:
    if type(key) is str or type(key) is int:
        return key
    raise TypeError(
        f"the dictionary {path or 'that is saved'} has the key {key!r}; a file of arrays holds dictionaries whose keys "
        f"are strings or integers{at_line(user_line())}"
    )
