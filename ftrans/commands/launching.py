"""Launching: `python -m ftrans launch -n 2 script.py` runs a script as several processes on this machine.

Each process has a number, by which `ft.initialize_processes()` in the script joins it to the others, and its lines are
printed with that number.  Signals are handed on.  When one process fails, the others are ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from ..xla.processes import ADDRESS, COUNT, INDEX, PARENT

# Seconds that the others get to end by themselves when one has failed, and then after SIGTERM.
_GRACE, _LAST = 5.0, 3.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Windows has no SIGKILL, and ends a process at once for any signal.
_LAST_SIGNAL = getattr(signal, "SIGKILL", signal.SIGTERM)


def add_command(commands: Any) -> None:
    """Add `launch` to the commands of a parser."""
    launch = commands.add_parser(
        "launch",
        help="run a script as several processes on this machine",
        description="Run a script as several processes on this machine, which ft.initialize_processes() joins.",
    )
    launch.add_argument("-n", "--processes", type=_positive, required=True, help="number of processes")
    launch.add_argument(
        "--devices", type=_positive, help="devices of each process: GPUs of this machine, or devices that a CPU is"
    )
    launch.add_argument("script", help="the script")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(given: argparse.Namespace) -> int:
    """Run a script as the command line says; return the exit code: that of the process that failed first, or 0."""
    return Launched([sys.executable, given.script, *given.arguments], given.processes, given.devices).wait()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


class Launched:
    """Processes that run one script.

    Args:
        command: the command line of each.
        count: how many there are.
        devices: the number of devices of each; None for one GPU each, or what JAX makes of the CPU.
    """

    def __init__(self, command: Sequence[str], count: int, devices: int | None = None) -> None:
        self._failed: int | None = None
        self._printing = threading.Lock()
        address = f"127.0.0.1:{_free_port()}"
        self._processes = [
            # A group of its own, so that a signal from the terminal arrives once.
            subprocess.Popen(
                command,
                env=_environment(address, count, index, devices),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            for index in range(count)
        ]
        streams = [(p.stdout, p.stderr) for p in self._processes]
        pipes = [
            (i, *ends) for i, pair in enumerate(streams) for ends in zip(pair, (sys.stdout, sys.stderr), strict=True)
        ]
        self._readers = [threading.Thread(target=self._copy, args=pipe, daemon=True) for pipe in pipes]
        for reader in self._readers:
            reader.start()

    def wait(self) -> int:
        """Wait until all have ended; return the exit code."""
        before = {number: signal.signal(number, self._hand_on) for number in _SIGNALS}
        try:
            limit, is_asked = float("inf"), False
            while any([p.poll() is None for p in self._processes]):
                self._look_for_failure()
                if self._failed is not None:
                    limit = min(limit, time.monotonic() + _GRACE)
                if time.monotonic() > limit:
                    self._signal(_LAST_SIGNAL if is_asked else signal.SIGTERM)
                    limit, is_asked = time.monotonic() + _LAST, True
                time.sleep(0.05)
            self._look_for_failure()
        finally:
            self._signal(_LAST_SIGNAL)
            for number, handler in before.items():
                signal.signal(number, handler)
        for reader in self._readers:
            reader.join(_LAST)
        return self._failed or 0

    def _look_for_failure(self) -> None:
        if self._failed is not None:
            return
        for index, process in enumerate(self._processes):
            code = process.poll()
            if code:
                self._failed = 128 - code if code < 0 else code
                how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
                rest = " The others are ended." if any([p.poll() is None for p in self._processes]) else ""
                self._print(sys.stderr, f"ftrans launch: process {index} {how}.{rest}\n")
                return

    def _hand_on(self, number: int, frame: Any) -> None:
        self._signal(number)

    def _signal(self, number: int) -> None:
        for process in self._processes:
            if process.poll() is not None:
                continue
            if os.name == "posix":
                process.send_signal(number)
            else:
                # Windows sends no SIGINT to another process; Ctrl-C in a terminal has reached all of them.
                process.terminate()

    def _copy(self, index: int, pipe: Any, stream: Any) -> None:
        for line in pipe:
            self._print(stream, f"[{index}] {line.decode('utf-8', errors='replace')}")

    def _print(self, stream: Any, line: str) -> None:
        with self._printing:
            stream.write(line if line.endswith("\n") else line + "\n")
            stream.flush()


def _environment(address: str, count: int, index: int, devices: int | None) -> dict[str, str]:
    """What a process is told, in addition to what this one was told."""
    told = {ADDRESS: address, COUNT: str(count), INDEX: str(index)}
    # Where Python of an environment on Windows starts, it starts another one, whose parent it is.
    if os.name == "posix":
        told[PARENT] = str(os.getpid())
    # Nobody else needs to reach them; and what they print comes when they print it, as it is read here.
    told |= {"JAX_COORDINATOR_BIND_ADDRESS": address, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    per_process = devices or 1
    ids = range(index * per_process, (index + 1) * per_process)
    told["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, ids))
    if devices is not None:
        told["JAX_NUM_CPU_DEVICES"] = str(devices)
    return {**os.environ, **told}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
