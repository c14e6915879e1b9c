"""Which states a scheduler takes: those of a scheduler of the same kind, for as many groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....base.source import at_line, user_line

# What torch's schedulers save beside what is saved here, and what these do without it.
_OF_TORCH = {"default_min_lr", "mode_worse", "step_ratio", "use_beta1", "verbose"}
_NOT_OF_TORCH = {"anneal_strategy", "step_size_up"}
_BY_GROUP = ("base_lrs", "_last_lr", "max_lrs", "min_lrs", "lr_lambdas", "base_momentums", "max_momentums")


def require_state(scheduler: Any, state: Any) -> None:
    """Raise unless `load_state_dict` of a scheduler can take a state.  Names that begin with "_" may be missing.

    Raises:
        TypeError: it is no mapping.
        ValueError: it is the state of another kind of scheduler, or of one for another number of groups.
    """
    what = type(scheduler).__name__
    if not isinstance(state, Mapping):
        raise TypeError(
            f"load_state_dict of {what} takes what its state_dict() returned, not {type(state).__name__}"
            + at_line(user_line())
        )
    own = scheduler.state_dict()
    missing = sorted({x for x in own if _is_required(x)} - _NOT_OF_TORCH - state.keys())
    unknown = sorted({x for x in state if _is_required(x)} - _OF_TORCH - own.keys())
    if missing or unknown:
        found = [f"{label} {', '.join(names)}" for label, names in (("lacks", missing), ("has", unknown)) if names]
        raise ValueError(
            f"load_state_dict of {what} was given the state of something else: it {' and '.join(found)}; make a "
            f"scheduler of the class that was saved, and load that{at_line(user_line())}"
        )
    for name in _BY_GROUP:
        count = len(own[name]) if name in own else 0
        if name in own and name in state and len(state[name]) != count:
            raise ValueError(
                f"load_state_dict of {what}, whose optimizer has {count} groups of parameters, was given {name} of "
                f"{len(state[name])}; make the optimizer with the groups that were saved{at_line(user_line())}"
            )
    _require_parts(scheduler, state)


def _is_required(name: str) -> bool:
    return name == "_schedulers" or not name.startswith("_")


def _require_parts(scheduler: Any, state: Mapping[str, Any]) -> None:
    """The same for the schedulers that one is made of."""
    if "_schedulers" not in state:
        return
    parts, states = scheduler._schedulers, state["_schedulers"]
    if len(parts) != len(states):
        raise ValueError(
            f"load_state_dict of a {type(scheduler).__name__} of {len(parts)} schedulers was given the states of "
            f"{len(states)}{at_line(user_line())}"
        )
    for part, held in zip(parts, states, strict=True):
        require_state(part, held)
