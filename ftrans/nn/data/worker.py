"""A worker process of a loader: it receives what batches to make, and sends them back.

It is started anew, not forked, since a process in which JAX runs must not be.  It uses no device.  It ends when the
pipe is closed, which is also what happens when the main process is killed.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from .fetching import Recipe, batches_of, fetch
from .messages import packed, receive, send
from .seeds import seed_all
from .worker_info import WorkerInfo, set_worker_info

# How long code of a dataset may go on when nobody wants its result any more.
_SECONDS_TO_END = 1.0


class Begin(NamedTuple):
    """An epoch begins.

    Attributes:
        epoch: number of the iteration of the loader.
        seed: its seed.
    """

    epoch: int
    seed: int


class Task(NamedTuple):
    """A batch to make.

    Attributes:
        epoch: number of the iteration that it belongs to.
        number: number of the batch in it.
        indices: the samples; None for the next ones of an iterable dataset.
    """

    epoch: int
    number: int
    indices: Any


class Result(NamedTuple):
    """The answer to a task.

    Attributes:
        epoch: as in the task.
        number: as in the task.
        batch: the batch, or an error.
        kind: "batch", "end" of an iterable dataset, or "error".
        trace: of an error, the lines of its traceback.
    """

    epoch: int
    number: int
    batch: Any
    kind: str
    trace: str = ""


def work(number: int, count: int, tasks: Connection, results: Connection) -> None:
    """What worker `number` of `count` does, from its start to its end."""
    # Ctrl-C is for the main process, which then closes the pipes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _keep_off_devices()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(tasks, inbox), daemon=True).start()
    try:
        for answer in _answers(number, count, inbox):
            send(results, _sendable(answer))
    except (BrokenPipeError, ConnectionResetError):
        # Nobody waits for it any more.
        return


def _keep_off_devices() -> None:
    """JAX computes on the CPU here, so that workers take no memory of an accelerator."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_platforms", "cpu")


def _read(tasks: Connection, inbox: queue.SimpleQueue[Any]) -> None:
    """Take in messages at once, so that the main process never waits for a worker that computes."""
    try:
        while True:
            inbox.put(receive(tasks))
    except (EOFError, OSError):
        inbox.put(None)
    time.sleep(_SECONDS_TO_END)
    os._exit(0)


def _answers(number: int, count: int, inbox: queue.SimpleQueue[Any]) -> Iterator[Result]:
    """The results of the messages that come in."""
    content = inbox.get()
    if content is None:
        return
    begin, recipe = Begin(-1, 0), None
    batches: Iterator[Any] = iter(())
    while (message := inbox.get()) is not None:
        task = message if isinstance(message, Task) else Task(message.epoch, -1, None)
        try:
            if isinstance(message, Begin):
                begin = message
                info = WorkerInfo(number, count, begin.seed + number, None)
                if recipe is None:
                    seed_all(info.seed)
                    recipe = _started(content, info)
                set_worker_info(info._replace(dataset=recipe.dataset))
                if recipe.is_iterable:
                    seed_all(info.seed)
                    batches = batches_of(recipe)
                continue
            if task.epoch != begin.epoch or recipe is None:
                # Of an iteration that was left.
                continue
            if task.indices is not None:
                # So that what is drawn for a batch depends on neither the worker nor the batches before.
                seed_all(begin.seed, task.number)
                yield Result(task.epoch, task.number, fetch(recipe, task.number, task.indices), "batch")
                continue
            for batch in batches:
                yield Result(task.epoch, task.number, batch, "batch")
                break
            else:
                yield Result(task.epoch, task.number, None, "end")
        except Exception as error:
            yield Result(task.epoch, task.number, error, "error", traceback.format_exc())


def _started(content: bytes, info: WorkerInfo) -> Recipe:
    """What the loader has given, after the user's function for the start."""
    try:
        recipe = pickle.loads(content)
    except Exception as error:
        error.add_note("  while a worker process of the loader unpickled the dataset, collate_fn and worker_init_fn")
        raise
    set_worker_info(info._replace(dataset=recipe.dataset))
    if recipe.start is not None:
        recipe.start(info.id)
    return recipe


def _sendable(result: Result) -> list[Any]:
    """A result as parts to send; an error that cannot be pickled as one that says the same."""
    try:
        parts = packed(result)
        if result.kind == "error":
            pickle.loads(pickle.dumps(result.batch))
        return parts
    except Exception as error:
        if result.kind == "error":
            told: Exception = RuntimeError(f"{type(result.batch).__name__}: {result.batch}")
        else:
            told = TypeError(f"a batch cannot be sent from a worker process, since it cannot be pickled: {error}")
        return packed(result._replace(batch=told, kind="error", trace=result.trace or traceback.format_exc()))
