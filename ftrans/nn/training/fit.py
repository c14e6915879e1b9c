"""nn.fit: train a model on batches, with validation, checkpoints, learning curves and an account of it all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...api.call import name_of
from ...base.source import at_line, user_line
from ..cells import RngState
from ..module import Module
from ..optimizer import Optimizer
from ..random import fold_in, key
from ..roots import require_module
from .callbacks import Callbacks, FitState
from .data import Source
from .history import History
from .loop import Training
from .steps import Measure, training_step
from .stopping import Best


def fit(
    model: Module,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    objective: Callable[..., Any] | None = None,
    optimizer: Any = None,
    epochs: int = 1,
    steps_per_epoch: int | None = None,
    validation: Any = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | Iterable[Callable[[Any, Any], Any]] = (),
    monitor: str | None = None,
    mode: str | None = None,
    patience: int | None = None,
    min_delta: float = 0.0,
    restore_best: bool = False,
    directory: str | os.PathLike[str] | None = None,
    save_every: int | None = None,
    resume: bool | str | os.PathLike[str] = False,
    callbacks: Any = (),
    seed: int | None = None,
    dtype: Any = None,
    check_finite: bool = True,
    progress: bool = True,
) -> History:
    """Train a model.

    A batch is a tuple (or list) of arrays, the target last, or a dictionary with the target under the name "target".
    The model is called with the rest of the batch, and `loss` and the metrics with its result and the target.  What
    does not fit this form is an `objective`, which is called with the model and the whole batch.  Both are means over
    the batch, written in NumPy or with `nn.functional`; they are compiled with the step.

    Args:
        model: the model.  It is trained in place, and is in training mode afterwards.
        data: `nn.batches(x, y, ...)`, a list or another iterable of batches, a torch DataLoader, or a function that
            returns an iterator, such as a generator function, called for each epoch (with its number, from 1, if it has
            a parameter).  Arrays may be NumPy's, torch's on the host, or JAX's.
        loss: a function of (output, target) that returns a number, such as `nn.functional.cross_entropy`, or a loss
            module.  Exactly one of `loss` and `objective` is given.
        objective: a function of (model, *batch), or (model, **batch) for dictionaries, that returns the loss, or a pair
            of the loss and a dictionary of further figures for the history.
        optimizer: a transformation of optax, or an `nn.Optimizer` of the model; `optax.adam(1e-3)` by default.
        epochs: how many epochs are to be made in all, those before a checkpoint included.
        steps_per_epoch: how many batches an epoch has at most; for data that does not end.
        validation: like `data`, gone through in evaluation mode after each epoch.
        metrics: functions of (output, target) by name, or some functions, whose names are taken.
        monitor: the figure by which epochs are compared; "val_loss" by default, or "loss" without validation.
        mode: "min" or "max": whether a small or a large value is good; needed unless a loss is monitored.
        patience: end the training after so many epochs that were not better; None for never.
        min_delta: how much better an epoch must be to count as better.
        restore_best: whether the model has the parameters of the best epoch in the end.
        directory: where `last` and `best` checkpoints and the learning curves are written; those of an earlier training
            are replaced.
        save_every: write the `last` checkpoint also after so many steps; it is written after each epoch anyway.
        resume: True to go on from the last checkpoint in `directory`, if there is one; or a checkpoint, or a directory
            with one, which must be there.
        callbacks: functions of an `nn.FitState`, called after each epoch, or objects like `nn.Callback`.
        seed: begins the model's streams of random numbers (of dropout and the like) anew; they go on by default.
        dtype: dtype that parameters and inputs are converted to for forward and backward pass, such as "bfloat16"; for
            an objective all floating-point arrays of the batch.
        check_finite: whether a loss or gradient that is NaN or infinite stops the training.
        progress: whether to show the progress, on stderr.

    Returns:
        The `nn.History`.  After Ctrl-C, which ends the training after the step that runs, too: then `history.stopped`
        is "interrupted".  A second Ctrl-C raises KeyboardInterrupt.

    Raises:
        FloatingPointError: a loss or a gradient was not finite.  An `ftrans.debug.AnomalyError` names the operation,
            the line and the reason; the model is as it was before that step.
        TypeError: the data is nothing to take batches from.
        ValueError: an argument does not fit the others, or the checkpoint is of another model, optimizer or data.
        ImportError: optax is not installed.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
        >>> data = nn.batches(x, 3 * x + 1, batch_size=16, seed=0)
        >>> import optax
        >>> model = nn.Linear(1, 1)
        >>> history = nn.fit(
        ...     model, data, loss=nn.functional.mse_loss, optimizer=optax.sgd(0.1), epochs=40, progress=False
        ... )
        >>> bool(history["loss"][-1] < 1e-2)
        True

    Cost: figures are fetched from the device every 16 steps, one window late, so nothing waits for a step; the batches
    of two windows are kept for that long.  `check_finite` reads the gradients once more in each step, and makes no
    copies of the parameters.
    """
    if (loss is None) == (objective is None):
        raise ValueError(
            "fit takes exactly one of loss, a function of (output, target), and objective, a function of "
            "(model, *batch)" + at_line(user_line())
        )
    require_module(model, "nn.fit trains")
    for what, f in (("loss", loss), ("objective", objective)):
        if f is not None:
            _expect_function(what, f)
    if not isinstance(epochs, int | np.integer) or epochs < 1:
        raise ValueError(f"epochs is a positive integer, not {epochs!r}{at_line(user_line())}")
    named_metrics = _named(metrics)
    if objective is not None and named_metrics:
        raise ValueError(
            "metrics are functions of (output, target), which an objective does not have; return a pair of the loss "
            f"and a dictionary of figures from the objective{at_line(user_line())}"
        )
    if resume is True and directory is None:
        raise ValueError(
            f"resume=True goes on from the last checkpoint in directory, which was not given{at_line(user_line())}"
        )
    measure = Measure(loss, objective, named_metrics)
    monitor = monitor or ("loss" if validation is None else "val_loss")
    known = [*measure.names, *(f"val_{name}" for name in measure.names if validation is not None)]
    if objective is None and not callbacks and monitor not in known:
        raise ValueError(f"monitor is {monitor!r}, but an epoch has {', '.join(known)}{at_line(user_line())}")
    training = Training(
        FitState(
            model, _optimizer(model, optimizer), History(), int(epochs), None if directory is None else Path(directory)
        ),
        measure,
        Source(data, "data", int(epochs), steps_per_epoch),
        None if validation is None else Source(validation, "validation", int(epochs)),
        Best(monitor, mode, min_delta, patience),
    )
    training.state.history.monitor = monitor
    training.save_every = save_every
    training.restore_best = restore_best
    training.dtype = dtype
    training.step = training_step(measure, check_finite, dtype)
    if not training.resume(resume) and seed is not None:
        for number, cell in enumerate(c for _, c in model.named_cells() if isinstance(c, RngState)):
            cell.value = np.append(fold_in(key(seed), number), np.uint32(0))
    if not model.training:
        model.train()
    return training.run(Callbacks(callbacks), progress)


def _expect_function(what: str, f: Any) -> None:
    if callable(f) and not isinstance(f, type):
        return
    given = f"the class {f.__name__}; make an object of it, {f.__name__}()" if isinstance(f, type) else repr(f)
    raise TypeError(
        f"{what} is a function, such as nn.functional.cross_entropy, or a module, such as nn.CrossEntropyLoss(), not "
        f"{given}{at_line(user_line())}"
    )


def _named(metrics: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """Metrics by name."""
    if callable(metrics):
        metrics = [metrics]
    found = dict(metrics) if isinstance(metrics, Mapping) else {name_of(f): f for f in metrics}
    for name, f in found.items():
        if isinstance(f, type):
            _expect_function(f"the metric {name}", f)
        if not callable(f) or name == "loss" or name.startswith("val_"):
            raise ValueError(
                f"metrics are functions of (output, target) by name, such as {{'accuracy': accuracy}}, whose names are "
                f"not 'loss' and do not begin with 'val_'; given was {name!r}: {f!r}{at_line(user_line())}"
            )
    return found


def _optimizer(model: Module, given: Any) -> Optimizer:
    if isinstance(given, Optimizer):
        if given.model is not model:
            raise ValueError(
                "the optimizer was made for another model; write nn.Optimizer(model, ...) with this one"
                + at_line(user_line())
            )
        return given
    if given is None:
        try:
            import optax
        except ImportError:
            raise ImportError(
                "the optimizers of nn.fit are those of optax, which is not installed: pip install 'ftrans[nn]'"
                + at_line(user_line())
            ) from None
        given = optax.adam(1e-3)
    return Optimizer(model, given)
