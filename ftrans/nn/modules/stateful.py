"""StatefulModule: the state dictionary of a module, what modules add to it, and hooks around saving and loading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any

from ...api.call import type_name
from ...autograd.hooks import Handle
from ...base.source import at_line, user_line
from .bare import joined
from .calling import CalledModule
from .graph import graph_of
from .hooks import add_hook, hooks_of
from .loading import LoadResult, array_of, put_arrays
from .not_here import WithoutTorchsOwn
from .paths import all_paths, is_saved

_EXTRA = "_extra_state"


class StatefulModule(CalledModule, WithoutTorchsOwn):
    """The part of a module that is saved and loaded."""

    def state_dict(
        self,
        prefix: str = "",
        rng: bool = False,
        gather: bool = False,
        *,
        destination: dict[str, Any] | None = None,
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Copies of the parameters and persistent buffers, as NumPy arrays by path.

        Args:
            prefix: prepended to each path.
            rng: whether to include the streams of random numbers.
            gather: whether each process receives arrays whose parts are in several processes; all processes must call
                this then.  Otherwise such arrays are those of JAX, of which `nn.save` writes the parts.
            destination: a dictionary that the entries are added to, and that is returned.
            keep_vars: whether to give the parameters and buffers themselves instead of copies of their arrays.

        Returns:
            A dictionary with the names and layouts that torch uses for the same layers.  A cell with several paths,
            such as a tied weight, appears under each of them.
        """
        found = {} if destination is None else destination
        special = list(_with_state_of_their_own(self))
        for path, module in special:
            for hook in hooks_of(module, "state_pre"):
                hook(module, _prefix_of(prefix, path), keep_vars)
        for path, cell in all_paths(self):
            if is_saved(cell, rng):
                found[prefix + path] = cell if keep_vars else array_of(cell, gather)
        for path, module in special:
            if _has_extra_state(module):
                found[prefix + joined(path, _EXTRA)] = module.get_extra_state()
        for path, module in reversed(special):
            for hook in hooks_of(module, "state"):
                hook(module, found, _prefix_of(prefix, path), {})
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Overwrite parameters and buffers.  They stay on the devices that they are on, divided as they are.

        Args:
            state_dict: arrays by path, as returned by `state_dict()`; torch tensors are accepted.
            strict: whether missing and unexpected paths are errors.

        Returns:
            A named pair of the lists `missing_keys` and `unexpected_keys`.

        Raises:
            ValueError: paths are missing or unexpected, shapes differ, values cannot be represented in the dtype
                (imaginary parts, fractions in integers), or paths of one cell have different values.  The message lists
                all problems, and nothing has been changed.
        """
        if not isinstance(state_dict, Mapping):
            is_file = isinstance(state_dict, str | PathLike)
            raise TypeError(
                f"load_state_dict takes a dictionary of arrays by path, but the argument is {type_name(state_dict)}; "
                + ("nn.load(path) reads one from a file" if is_file else "model.state_dict() gives one")
                + at_line(user_line())
            )
        special = list(_with_state_of_their_own(self))
        if not special:
            return put_arrays(self, state_dict, strict, "load_state_dict", {})
        given = dict(state_dict)
        missing, unexpected, problems = _before_loading(special, given, strict)
        extra = [(m, joined(path, _EXTRA)) for path, m in special if _has_extra_state(m)]
        missing += [key for _, key in extra if key not in given and key not in missing]
        extra = [(m, given.pop(key)) for m, key in extra if key in given]
        if strict:
            problems += [
                f"{what}: {', '.join(x)}" for what, x in (("missing", missing), ("unexpected", unexpected)) if x
            ]
        found = put_arrays(self, given, strict, "load_state_dict", {}, problems)
        result = LoadResult([*missing, *found.missing_keys], [*unexpected, *found.unexpected_keys])
        for module, state in extra:
            module.set_extra_state(state)
        for _, module in reversed(special):
            for hook in hooks_of(module, "load"):
                hook(module, result)
        return result

    # What a class adds

    def get_extra_state(self) -> Any:
        """What else belongs to the state: a class that overrides this and `set_extra_state` adds an entry to it.

        `state_dict()` has the result under the path `_extra_state`.  It may be anything; `nn.save` writes arrays only.
        """
        raise RuntimeError(self._no_extra_state("get_extra_state") + at_line(user_line()))

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` has returned; `load_state_dict` calls this when the arrays are loaded.

        Args:
            state: from `get_extra_state`.
        """
        raise RuntimeError(self._no_extra_state("set_extra_state") + at_line(user_line()))

    def _no_extra_state(self, name: str) -> str:
        return (
            f"{type(self).__name__} has no extra state; a class whose state is more than parameters and buffers "
            f"defines both get_extra_state() and set_extra_state(state), of which {name} was called"
        )

    # Hooks

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a function that is called before `state_dict` reads the module.

        Args:
            hook: called as `hook(module, prefix, keep_vars)`.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add_hook(self, "state_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a function that is called when `state_dict` has read the module, and may change the dictionary.

        Args:
            hook: called as `hook(module, state_dict, prefix, local_metadata)`; the last is an empty dictionary.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Example:
            >>> from ftrans import nn
            >>> layer = nn.Linear(2, 1)
            >>> handle = layer.register_state_dict_post_hook(lambda module, state, prefix, _: state.pop("bias"))
            >>> list(layer.state_dict())
            ['weight']
        """
        return add_hook(self, "state", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a function that is called before `load_state_dict`, and may change the dictionary.

        Args:
            hook: called as `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                error_msgs)`, with a copy of the dictionary, and lists that it may add to: paths that count as missing
                or unexpected, and reasons not to load anything.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add_hook(self, "load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a function that is called when `load_state_dict` has loaded everything.

        Unlike in torch it is not called where something is missing or unexpected and `strict` is set: nothing is
        loaded then.

        Args:
            hook: called as `hook(module, incompatible_keys)`, with the lists that `load_state_dict` returns.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add_hook(self, "load", hook)


def _with_state_of_their_own(module: StatefulModule) -> Iterator[tuple[str, StatefulModule]]:
    """The modules that have hooks, or a state beside their arrays, with their paths."""
    for path, m in graph_of(module).modules.items():
        if "_hooks" in m.__dict__ or _has_extra_state(m):
            yield path, m


def _has_extra_state(module: Any) -> bool:
    return type(module).get_extra_state is not StatefulModule.get_extra_state


def _prefix_of(prefix: str, path: str) -> str:
    return f"{prefix}{path}." if path else prefix


def _before_loading(
    modules: list[tuple[str, StatefulModule]], given: dict[str, Any], strict: bool
) -> tuple[list[str], list[str], list[str]]:
    """What the hooks before loading add to the paths that are missing and unexpected, and to the problems."""
    missing: list[str] = []
    unexpected: list[str] = []
    problems: list[str] = []
    for path, module in modules:
        for hook in hooks_of(module, "load_pre"):
            hook(module, given, _prefix_of("", path), {}, strict, missing, unexpected, problems)
    return missing, unexpected, problems
