"""Processes that compute together, under `jax.distributed`: how they start, and what each learns of the others.

Every process runs the same code, and a compiled program whose arrays are divided over the devices of all of them runs
when all have called it.  So what is not divided, such as arrays of NumPy and the program itself, must be the same in
all; that is compared when a program runs first.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.foreign import found_no_cluster, leave_signals_alone, says_process_is_gone
from ..base.source import at_line, user_line
from ..core.program import Program
from ..core.witness import CodeBuilder
from .divided import gathered
from .execute import about_to_run, run_program
from .kinds import is_traced
from .starting import start
from .watching import end, watch

# What `python -m ftrans launch` tells the processes that it starts.
ADDRESS, COUNT, INDEX, PARENT = "JAX_COORDINATOR_ADDRESS", "FTRANS_PROCESSES", "FTRANS_PROCESS", "FTRANS_LAUNCHER"
# Texts of at most so many bytes are exchanged at once.
_SHORT = 1024


@dataclass(frozen=True)
class Here:
    """This process.

    Attributes:
        index: its number, from 0.
        count: the number of processes that compute together.
    """

    index: int
    count: int

    def __str__(self) -> str:
        return f"process {self.index} of {self.count}"

    @property
    def others(self) -> str:
        """The other processes, for a message about one of them."""
        return f"process {1 - self.index}" if self.count == 2 else "another process"


def this_process() -> Here:
    """This process, among those that `jax.distributed` has put together."""
    jax = sys.modules.get("jax")
    try:
        if jax is None or not jax.distributed.is_initialized():
            return Here(0, 1)
    except AttributeError:
        # Another thread is about to import it.
        return Here(0, 1)
    return Here(jax.process_index(), jax.process_count())


def join(
    address: str | None,
    count: int | None,
    index: int | None,
    devices: Sequence[int] | None,
    heartbeat_timeout: float,
    hang_timeout: float,
) -> Here:
    """Join the other processes, as `ft.initialize_processes` says."""
    if address is None and COUNT in os.environ:
        address = os.environ[ADDRESS]
        count, index = int(os.environ[COUNT]), int(os.environ[INDEX])
        watch.parent = int(os.environ[PARENT]) if PARENT in os.environ else None
    joined = True

    def initialize() -> None:
        nonlocal joined
        joined = _join(address, count, index, devices, heartbeat_timeout)

    if not start(initialize):
        initialize()
    if joined:
        watch.limit = hang_timeout
        _begin()
    return this_process()


def _begin() -> None:
    """Start what looks after this process, as one of several."""
    if watch.start(_waits):
        atexit.register(_leave)


def _join(address: str | None, count: int | None, index: int | None, devices: Any, heartbeat_timeout: float) -> bool:
    """Call `jax.distributed.initialize`; return False where there is only this process."""
    import jax

    if jax.distributed.is_initialized():
        raise RuntimeError(
            f"this process has joined the others already; initialize_processes is called once{at_line(user_line())}"
        )
    # SIGTERM ends a process as usual, and asks nn.fit to stop.
    leave_signals_alone(jax)
    try:
        jax.distributed.initialize(
            address, count, index, local_device_ids=devices, heartbeat_timeout_seconds=int(heartbeat_timeout)
        )
    except jax.errors.JaxRuntimeError:
        raise
    except RuntimeError:
        raise RuntimeError(
            "JAX has been used before this process joined the others, so its devices are those of one process; call "
            f"ft.initialize_processes() at the beginning of the script{at_line(user_line())}"
        ) from None
    except ValueError as error:
        if address is None and found_no_cluster(error):
            return False
        raise
    return True


def _leave() -> None:
    """At the end of a process that has failed: do not wait for the others, who wait for it."""
    if _lost or getattr(sys, "last_value", None) is not None:
        end("")


_lost: list[BaseException] = []


def _waits(what: str, is_own: bool) -> str:
    """What to say of waiting for something."""
    here = this_process()
    if is_own:
        return f"{here} ends" + (f": it has waited for {what}" if what else "")
    return (
        f"{here} ends: {here.others} hangs, or has left the loop that all of them run (ft.initialize_processes has "
        f"hang_timeout=): this process has waited for {what}"
    )


def lost(error: BaseException) -> RuntimeError | None:
    """The error for a computation that failed because another process has ended; None for other failures, and for one
    that this function has made.
    """
    if error.__cause__ in _lost or not says_process_is_gone(error):
        return None
    _lost.append(error)
    here = this_process()
    return RuntimeError(
        f"{here.others} has ended, so {here} cannot go on: look for the error in its output. A training that writes "
        f"checkpoints continues by nn.fit(resume=True), on any number of processes ({error}){at_line(user_line())}"
    )


# What each process says


def from_all(text: str, what: str = "what all processes say") -> list[str]:
    """A text of each process, in order; all processes must call this.

    Raises:
        RuntimeError: another process has ended.
    """
    if this_process().count == 1:
        return [text]
    given = text.encode()
    length = np.frombuffer(np.uint32(len(given)).tobytes(), np.uint8)
    rows = _exchanged(np.concatenate([length, _padded(given, _SHORT)]), what)
    lengths = [int(row[:4].copy().view(np.uint32)[0]) for row in rows]
    rows = rows[:, 4:]
    if max(lengths) > _SHORT:
        rows = _exchanged(_padded(given, 1 << (max(lengths) - 1).bit_length()), what)
    return [row[:n].tobytes().decode() for row, n in zip(rows, lengths, strict=True)]


def _padded(given: bytes, size: int) -> Any:
    return np.frombuffer(given[:size].ljust(size, b"\0"), np.uint8)


def _exchanged(own: Any, what: str) -> Any:
    """Arrays of one shape of all processes, stacked."""
    about_to_run()
    from jax.experimental import multihost_utils

    _begin()
    try:
        with watch.waiting_for(what):
            return np.asarray(multihost_utils.process_allgather(own))
    except RuntimeError as error:
        raise lost(error) or error from error


def differences(facts: Mapping[str, str]) -> list[tuple[int, str, str, str]]:
    """What is not the same in all processes: (process, name, value in process 0, value in this process).

    All processes must call this, and get the same answer; an empty value stands for a fact that a process lacks.
    """
    import json

    found = [json.loads(text) for text in from_all(json.dumps(facts), "the comparison of all processes")]
    first = found[0]
    return [
        (index, name, first.get(name, ""), other.get(name, ""))
        for index, other in enumerate(found)
        for name in {**first, **other}
        if first.get(name, "") != other.get(name, "")
    ]


def digest(x: Any) -> str:
    """A short text that differs for different arrays, texts or bytes."""
    import hashlib

    if not isinstance(x, str | bytes):
        array = np.ascontiguousarray(x)
        x = f"{array.dtype}{array.shape}".encode() + array.tobytes()
    return hashlib.blake2b(x.encode() if isinstance(x, str) else x, digest_size=8).hexdigest()


# Arrays of all processes


def is_across(x: Any) -> bool:
    """Whether `x` is a JAX array, or the sharding of one, on devices of other processes, too."""
    return not is_traced(x) and not getattr(x, "is_fully_addressable", True)


class UnequalArguments(ValueError):
    """A program was called with other arguments by another process.

    Attributes:
        places: the arguments that differ.
        process: the process.
    """

    def __init__(self, places: list[int], process: int, types: list[str]) -> None:
        self.places = places
        self.process = process
        self.types = types
        super().__init__(self.about([f"argument {i}" for i in places]))

    def about(self, names: Sequence[str]) -> str:
        """The message with names for the arguments."""
        shown = [f"{name}: {type}" for name, type in zip(names, self.types, strict=True)]
        rest = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
        return (
            f"process {self.process} has other values than process 0 in {', '.join(shown[:3])}{rest}. What is not "
            "divided over the processes must be the same in all of them: seed all by the same number "
            "(nn.manual_seed), and divide data by jax.make_array_from_process_local_data, or nn.fit(mesh=...)"
            + at_line(user_line())
        )


def run_together(function: Any, program: Program, args: Sequence[Any], is_first: bool) -> Any:
    """Call what JAX has compiled of a program, with arguments or results that are divided over the processes."""
    if is_first:
        _compare(function, program.name, args)
    _begin()
    try:
        outs = function(*args)
    except RuntimeError as error:
        raise lost(error) or error from error
    if outs:
        watch.follow(
            f"the results of {program.name}", outs[program.derive("smallest result", lambda: _smallest(program))]
        )
    return outs


def _smallest(program: Program) -> int:
    """The number of the smallest result."""
    sizes = [t.nbytes for t in program.out_types]
    return sizes.index(min(sizes))


def _compare(function: Any, name: str, args: Sequence[Any]) -> None:
    """Raise unless all processes are about to run the same program on the same arguments.

    Raises:
        RuntimeError: they are not about to run the same program.
        UnequalArguments: arguments that are not divided differ.
    """
    facts = {"": digest(function.lower(*args).as_text())}
    facts.update({str(i): digest(np.asarray(x)) for i, x in enumerate(args) if not is_across(x)})
    found = differences(facts)
    if not found:
        return
    process = found[0][0]
    places = [int(key) for index, key, _, _ in found if index == process and key]
    if ("" in [key for index, key, _, _ in found if index == process]) or max(places) >= len(args):
        raise RuntimeError(
            f"process {process} runs another program than process 0 in {name}: all processes must run the same code, "
            "with the same settings (such as learning rates), shapes and number of calls; nothing may depend on the "
            f"number of a process around a compiled call{at_line(user_line())}"
        )
    raise UnequalArguments(places, process, [f"{np.asarray(args[i]).dtype}{list(np.shape(args[i]))}" for i in places])


def _evaluate_together(program: Program, args: Sequence[Any]) -> list[Any]:
    """The results of a program as NumPy arrays that all processes know: for code that asks for values."""
    with watch.waiting_for("a value that Python asks for"):
        return [gathered(x) for x in run_program(program, args)]


CodeBuilder.evaluate_together = staticmethod(_evaluate_together)
