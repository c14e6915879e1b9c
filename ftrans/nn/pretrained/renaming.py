"""Renamings: where in a model the arrays of a state dict with other names belong, and the way back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...api.call import type_name
from ...base.source import at_line, user_line

_PART = re.compile(r"(.+)\[(\d+)/(\d+)\]")


class Target(NamedTuple):
    """A place in a model.

    Attributes:
        path: the path of a parameter or buffer.
        part: which of the equal parts along its first axis is meant, from 0.
        parts: how many there are.
    """

    path: str
    part: int = 0
    parts: int = 1

    @classmethod
    def named(cls, text: str) -> Target:
        """The place that a text names: a path, or a path with a part, such as `in_proj_weight[0/3]`."""
        found = _PART.fullmatch(text)
        return cls(text) if found is None else cls(found[1], int(found[2]), int(found[3]))

    def __str__(self) -> str:
        return self.path if self.parts == 1 else f"{self.path}[{self.part}/{self.parts}]"


class Renaming:
    """The names of a state dict, and what they are called in a model.

    Args:
        given: the argument `rename` of `nn.from_torch`.

    Raises:
        TypeError: it is nothing of what `rename` may be.
        ValueError: a pattern is no regular expression.
    """

    def __init__(self, given: Any) -> None:
        self._names: Mapping[str, str | None] | None = None
        if given is None:
            given = {}
        if isinstance(given, Mapping):
            self._names = given
            self._rename: Callable[[str], Any] = self._by_names
        elif callable(given):
            self._rename = given
        elif _are_pairs(given):
            self._patterns = [(_compiled(pattern, "rename"), replacement) for pattern, replacement in given]
            self._rename = self._by_patterns
        else:
            raise TypeError(
                "rename is a dictionary of names, a sequence of pairs of a regular expression and its replacement, or "
                f"a function of a name, not {type_name(given)}{at_line(user_line())}"
            )

    def target(self, name: str) -> Target | None:
        """The place of a name; None if it is left out.

        Raises:
            TypeError: the function of the user has returned something else than a name.
            re.error: a replacement refers to a group that its pattern does not have.
        """
        found = self._rename(name)
        if found is not None and not isinstance(found, str):
            raise TypeError(
                f"rename must return the path of {name!r} in the model, or None to leave it out, not "
                f"{type_name(found)}{at_line(user_line())}"
            )
        return None if found is None else Target.named(found)

    def _by_names(self, name: str) -> str | None:
        found = _leading(name, self._names or {})
        if found is None:
            return name
        head, new = found
        return None if new is None else new + name[len(head) :]

    def _by_patterns(self, name: str) -> str | None:
        for pattern, replacement in self._patterns:
            if replacement is None:
                if pattern.search(name):
                    return None
            else:
                name = pattern.sub(replacement, name)
        return name

    def names_of(self, paths: Iterable[str]) -> list[str]:
        """The names that belong to the paths of a model, by a dictionary read backwards.

        Raises:
            ValueError: the renaming is no dictionary, or two of its names are one path.
        """
        if self._names is None:
            raise ValueError(
                "names can be found backwards only where rename is a dictionary; give the names that are wanted, "
                f"like=module.state_dict(){at_line(user_line())}"
            )
        backwards: dict[str, str] = {}
        parts: dict[str, list[str]] = {}
        for name, path in self._names.items():
            if path is not None and Target.named(path).parts > 1:
                parts.setdefault(Target.named(path).path, []).append(name)
            elif path is not None and backwards.setdefault(path, name) != name:
                raise ValueError(
                    f"rename has two names for {path!r}, {backwards[path]!r} and {name!r}; say which are wanted, "
                    f"like=module.state_dict(){at_line(user_line())}"
                )
        found: list[str] = []
        for path in paths:
            head = _leading(path, backwards)
            names = parts.get(path) or [path if head is None else head[1] + path[len(head[0]) :]]
            # A name that the dictionary leads elsewhere is not the name of this path.
            found += [name for name in names if (target := self.target(name)) is not None and target.path == path]
        return found


def _leading(name: str, names: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The longest entry that is a name, or its beginning up to a dot."""
    head = name
    while head not in names:
        head, dot, _ = head.rpartition(".")
        if not dot:
            return None
    return head, names[head]


def _are_pairs(given: Any) -> bool:
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and all(isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2 for pair in given)
    )


class Transposed:
    """The names of matrices that a state dict has transposed.

    Args:
        given: the argument `transpose` of `nn.from_torch`.
    """

    def __init__(self, given: Any) -> None:
        given = [given] if isinstance(given, str | re.Pattern) else given
        if not isinstance(given, Sequence):
            raise TypeError(
                "transpose is a regular expression that is found in the names of the matrices to transpose, or a "
                f"sequence of them, not {type_name(given)}{at_line(user_line())}"
            )
        self._patterns = [_compiled(pattern, "transpose") for pattern in given]

    def __contains__(self, name: str) -> bool:
        return any(pattern.search(name) for pattern in self._patterns)


def _compiled(pattern: Any, what: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(
            f"{what} has {pattern!r}, which is no regular expression: {error}{at_line(user_line())}"
        ) from None
