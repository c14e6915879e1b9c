"""Several processes: checks that are functions, run by two processes of two devices each on loopback.

`together` runs checks, one after another, in one pair of processes, and returns what each process has found.  A pair
that does not end within the limit is killed, and nothing is left running.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DEVICES = 2
_RESULT = "result of a check: "


class Ended(NamedTuple):
    """A process that has ended: its exit code, and what it has printed."""

    code: int
    out: str
    err: str
    seconds: float


def environment(**more: str) -> dict[str, str]:
    """The environment of processes of several."""
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parent.parent)])
    given = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(DEVICES), "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **given, **more}


@contextmanager
def running(commands: list[list[str]], **more: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes, each in a group of its own, which are killed at the end of the block."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for command in commands:
            processes.append(
                subprocess.Popen(
                    command,
                    env=environment(**more),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            )
        yield processes
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait(processes: list[subprocess.Popen[str]], limit: float) -> list[Ended]:
    """Wait until processes have ended; kill them after `limit` seconds."""
    begun = time.monotonic()
    found: list[Ended] = [None] * len(processes)  # type: ignore[list-item]

    def read(index: int) -> None:
        process = processes[index]
        out, err = process.communicate()
        found[index] = Ended(process.returncode, out, err, time.monotonic() - begun)

    readers = [threading.Thread(target=read, args=(i,)) for i in range(len(processes))]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(max(begun + limit - time.monotonic(), 0))
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    for reader in readers:
        reader.join()
    return found


def commands(names: list[str], count: int = 2) -> list[list[str]]:
    """The command lines of processes that run checks together."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    return [[sys.executable, __file__, address, str(count), str(i), *names] for i in range(count)]


def together(names: list[str], limit: float = 60, **more: str) -> dict[str, list[Any]]:
    """What each of two processes has found in each check; the text of an error where one was raised."""
    with running(commands(names), **more) as processes:
        ended = wait(processes, limit)
    for process in ended:
        assert process.code == 0, f"exit code {process.code}\n{process.out}\n{process.err[-4000:]}"
    # JAX's Gloo prints, too, and may be in the middle of a line.
    lines = [[line.partition(_RESULT)[2] for line in p.out.splitlines() if _RESULT in line] for p in ended]
    found = [[json.loads(line) for line in process] for process in lines]
    return {name: [process[i] for process in found] for i, name in enumerate(names)}


def _main(address: str, count: str, index: str, *names: str) -> None:
    import process_checks

    import ftrans as ft

    if int(count) > 1:
        limit = float(os.environ.get("HANG_TIMEOUT", "60"))
        ft.initialize_processes(address, int(count), int(index), heartbeat_timeout=5, hang_timeout=limit)
    for name in names:
        check: Callable[[], Any] = getattr(process_checks, name)
        try:
            result = check()
        except Exception as error:
            traceback.print_exc()
            result = f"{type(error).__name__}: {error}"
        print(_RESULT + json.dumps(result, default=_plain), flush=True)


def _plain(x: Any) -> Any:
    return np.asarray(x).tolist()


if __name__ == "__main__":
    _main(*sys.argv[1:])
