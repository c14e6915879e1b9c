"""Joining the processes that compute together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.source import at_line, user_line
from ..xla import join


def initialize_processes(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    local_device_ids: Sequence[int] | None = None,
    heartbeat_timeout: float = 10,
    hang_timeout: float = 600.0,
) -> tuple[int, int]:
    """Join the processes that compute together; the first call of a script for several processes.

    It calls `jax.distributed.initialize`.  Without arguments, JAX finds them where processes are started by Slurm, Open
    MPI, Kubernetes or on a TPU, and `python -m ftrans launch -n 2 script.py` says what they are.  Started in none of
    these ways, the script runs as one process, and this does nothing.

    Args:
        coordinator_address: host and port of process 0, such as "10.0.0.1:1234", where it listens for the others.
        num_processes: the number of processes.
        process_id: the number of this one, from 0.
        local_device_ids: the devices of this machine that belong to this process; all by default.
        heartbeat_timeout: seconds after which a process that has died, or has been stopped, ends the others.
        hang_timeout: seconds that this process may wait for the others, after which it ends with a message: one that
            hangs would keep them waiting for ever.  It must be longer than compiling takes.

    Returns:
        `(index, count)`: the number of this process, from 0, and how many there are.

    Raises:
        RuntimeError: JAX has been used before, or this was called before.
        ValueError: only some of the first three arguments are given; or a timeout is not positive.

    Example:
        >>> import ftrans as ft
        >>> ft.initialize_processes()  # doctest: +SKIP
        (0, 2)
    """
    given = coordinator_address, num_processes, process_id
    is_one = isinstance(coordinator_address, str) and _is_index(num_processes) and _is_index(process_id)
    if not is_one and any([x is not None for x in given]):
        raise ValueError(
            "initialize_processes takes a text coordinator_address and integers num_processes and process_id, or none "
            f"of them where the launcher says what they are; given were {given!r}{at_line(user_line())}"
        )
    if local_device_ids is not None and not (
        isinstance(local_device_ids, list) and all(map(_is_index, local_device_ids))
    ):
        raise ValueError(f"local_device_ids is a list of integers, not {local_device_ids!r}{at_line(user_line())}")
    for name, seconds in (("heartbeat_timeout", heartbeat_timeout), ("hang_timeout", hang_timeout)):
        if not isinstance(seconds, int | float) or not seconds >= 1:
            raise ValueError(f"{name} is a number of seconds, at least 1, not {seconds!r}{at_line(user_line())}")
    here = join(coordinator_address, num_processes, process_id, local_device_ids, heartbeat_timeout, hang_timeout)
    return here.index, here.count


def _is_index(x: Any) -> bool:
    return isinstance(x, int) and x >= 0
