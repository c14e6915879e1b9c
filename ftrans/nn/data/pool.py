"""A pool: the worker processes of a loader, as the main process sees them.

Each worker has two pipes of its own and shares no lock with anybody, so one that is killed leaves nothing locked: its
pipe ends, and that is an error at once.
"""

from __future__ import annotations

import pickle
import signal
import time
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ...base.source import at_line, user_line
from .fetching import Recipe
from .messages import packed, pickled, receive, send
from .worker import Begin, Result, Task, work

# After so many seconds workers that have not ended by themselves are killed.
_SECONDS_TO_END = 3.0


class Pool:
    """Workers that make batches by a recipe.

    Args:
        recipe: how batches are made.
        count: number of workers.
        context: a start method of `multiprocessing`.

    Attributes:
        epoch: number of the iteration that the workers are in.
        open: for each worker the number of batches that it was asked for and has not sent yet.

    Raises:
        TypeError: dataset or functions cannot be pickled.
    """

    def __init__(self, recipe: Recipe, count: int, context: Any) -> None:
        content = _pickled(recipe)
        self.epoch = -1
        self.open = [0] * count
        self._tasks: list[Connection] = []
        self._results: list[Connection] = []
        self._processes: list[Any] = []
        self._has_answered = False
        self.close = weakref.finalize(self, _close, self._processes, self._tasks, self._results)
        for i in range(count):
            take_task, give_task = context.Pipe(duplex=False)
            take_result, give_result = context.Pipe(duplex=False)
            process = context.Process(
                target=work, args=(i, count, take_task, give_result), name=f"DataLoader worker {i}", daemon=True
            )
            process.start()
            self._processes.append(process)
            self._tasks.append(give_task)
            self._results.append(take_result)
            # The other ends belong to the worker alone, so that a pipe ends with it.
            take_task.close()
            give_result.close()
        for i in range(count):
            self._send(i, content)

    def begin(self, seed: int) -> int:
        """Begin an iteration of the loader; return its number."""
        self.epoch += 1
        self.open = [0] * len(self.open)
        for i in range(len(self.open)):
            self._send(i, Begin(self.epoch, seed))
        return self.epoch

    def ask(self, worker: int, number: int, indices: Any) -> None:
        """Ask a worker for a batch."""
        self._send(worker, Task(self.epoch, number, indices))
        self.open[worker] += 1

    def next_result(self, seconds: float) -> Result:
        """The next result of any worker.

        Args:
            seconds: how long to wait at most; 0 for as long as it takes.

        Raises:
            TimeoutError: none came in this time.
            RuntimeError: a worker has ended.
            Exception: what the dataset has raised.
        """
        deadline = time.monotonic() + seconds if seconds else None
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            # A worker that ends before it has taken its end of a pipe, as on Windows, leaves that open.
            ready = wait([*self._results, *(process.sentinel for process in self._processes)], left)
            if not ready:
                raise TimeoutError(
                    f"no batch came from the {len(self.open)} workers of the DataLoader within timeout={seconds:g} "
                    f"seconds; give them more time, or timeout=0 to wait for as long as it takes{at_line(user_line())}"
                )
            sent = [worker for worker, pipe in enumerate(self._results) if pipe in ready]
            if not sent:
                raise self._ended([process.sentinel in ready for process in self._processes].index(True))
            worker = sent[0]
            try:
                result = receive(self._results[worker])
            except (EOFError, OSError):
                raise self._ended(worker) from None
            if result.epoch != self.epoch:
                # Of an iteration that was left.
                continue
            self.open[worker] -= 1
            self._has_answered = True
            if result.kind == "error":
                result.batch.add_note(
                    f"  in worker {worker} of {len(self.open)} of the DataLoader, where the traceback was\n"
                    + result.trace
                )
                raise result.batch
            return result

    def _send(self, worker: int, message: Any) -> None:
        try:
            send(self._tasks[worker], packed(message))
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended(worker) from None

    def _ended(self, worker: int) -> RuntimeError:
        """The error for a worker that is no more."""
        process = self._processes[worker]
        process.join(1.0)
        code = process.exitcode
        if code is not None and code < 0:
            how = f"was killed by {_name_of_signal(-code)}"
            hint = "; the system kills processes when memory runs out: use fewer workers, or smaller batches"
            hint = hint if how.endswith("SIGKILL") else ""
        else:
            how, hint = f"has ended with the exit code {code}", ""
            if not self._has_answered:
                hint = (
                    "; what it printed says why. A worker imports the main script, whose training must therefore be "
                    'below `if __name__ == "__main__":`'
                )
        return RuntimeError(
            f"worker {worker} of {len(self.open)} of the DataLoader (process {process.pid}) {how}{hint}"
            + at_line(user_line())
        )


def _pickled(recipe: Recipe) -> bytes:
    """What each worker is given."""
    try:
        return pickled(recipe)
    except Exception as error:
        if not isinstance(error, pickle.PicklingError | AttributeError | TypeError):
            raise
        raise TypeError(
            "the dataset, collate_fn and worker_init_fn of a DataLoader with workers are pickled, since worker "
            f"processes are started anew (JAX must not be forked), which failed: {error}. Define classes and functions "
            f"at the top of a module, in place of lambdas and local ones, or write num_workers=0{at_line(user_line())}"
        ) from error


def _name_of_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _close(processes: Sequence[Any], tasks: Sequence[Connection], results: Sequence[Connection]) -> None:
    """End workers; kill those that do not."""
    for connection in (*tasks, *results):
        connection.close()
    deadline = time.monotonic() + _SECONDS_TO_END
    for process in processes:
        process.join(max(deadline - time.monotonic(), 0.0))
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
