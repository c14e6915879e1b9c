"""nn.fit: train a model on batches, with validation, checkpoints, learning curves and a history."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...base.narrow_products import exact_products, product_dtype
from ...base.source import at_line, user_line
from ...base.tracebacks import short_tracebacks
from ..cells.kinds import RngState
from ..devices.placing import place_state
from ..mixed_precision.autocast import precision_named
from ..mixed_precision.loss_scale import LossScale
from ..modules.graph import graph_of
from ..modules.module import Module
from ..modules.roots import require_module
from ..optim.optax_update import adam
from ..optim.optimizer import Optimizer
from ..random import fold_in, key
from .callbacks import Callbacks, FitState
from .checkpoints import FORMATS
from .data import Source
from .history import History
from .loop import Training
from .measures import Measure, named_metrics, require_function
from .placement import placement_for
from .processes import Together
from .steps import Gathered, training_step
from .stopping import Best


@short_tracebacks
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
    checkpoint_format: str | None = None,
    resume: bool | str | os.PathLike[str] = False,
    callbacks: Any = (),
    seed: int | None = None,
    precision: Any = None,
    accumulate: int = 1,
    check_finite: bool = True,
    progress: bool = True,
    mesh: Any = None,
    rules: Any = None,
    batch_spec: Any = None,
    uneven: str = "pad",
) -> History:
    """Train a model.

    A batch is a tuple (or list) of arrays, the last of which is the target, or a dictionary with the target under the
    name "target".  The model is called with the other arrays; `loss` and metrics are called with its output and the
    target.  For anything else, pass an `objective`, which is called with the model and the whole batch.  Both return
    means over the batch, are written in NumPy or with `nn.functional`, and are compiled as part of the step.

    Args:
        model: the model.  It is trained in place, and is in training mode afterwards.
        data: `nn.batches(x, y, ...)`, a list or another iterable of batches, an `nn.data.DataLoader` or one of torch,
            or a function that returns an iterator, such as a generator function.  A function is called once for each
            epoch, with the number of the epoch, from 1, if it has a parameter.  Arrays can be NumPy arrays, torch
            tensors on the host, or JAX arrays.
        loss: a function of (output, target) that returns a number, such as `nn.functional.cross_entropy`, or a loss
            module. Exactly one of `loss` and `objective` must be given.
        objective: a function of (model, *batch), or (model, **batch) for dictionaries, that returns the loss, or a pair
            of the loss and a dictionary of further metrics.
        optimizer: a transformation of Optax, or an optimizer of the model, `nn.Optimizer` or one of `nn.optim`;
            `optax.adam(1e-3)` by default.
        epochs: total number of epochs, including those before a checkpoint.
        steps_per_epoch: maximum number of batches in an epoch; required for infinite data.
        validation: like `data`, evaluated in evaluation mode after each epoch.
        metrics: a dictionary from names to functions of (output, target) and metrics of `nn.metrics`, or a sequence of
            them, which have their own names.  Functions return means over a batch.  For a metric that is not a mean
            over samples, such as an F1 score, use one of `nn.metrics`, which accumulates sums.
        monitor: the metric by which epochs are compared; "val_loss" by default, or "loss" without validation.
        mode: "min" or "max", depending on which values of the metric are better; required unless a loss is monitored.
        patience: stop after this many epochs without improvement; None for never.
        min_delta: minimum improvement that counts.
        restore_best: whether to restore the parameters of the best epoch at the end.
        directory: where `last` and `best` checkpoints and the learning curves are written; existing ones are replaced.
        save_every: number of steps after which the `last` checkpoint is written, in addition to the end of each epoch.
        checkpoint_format: "safetensors" for files, which process 0 writes, or "orbax" for folders (`pip install
            'ftrans[scale]'`), to which each process writes the parts of arrays that it holds; by default "orbax" if
            parts of an array are in other processes.  Both can be resumed from, on any number of devices.
        resume: True to continue from the last checkpoint in `directory`, if there is one; or the path of a checkpoint
            or directory, which must exist.
        callbacks: functions of an `nn.FitState`, called after each epoch, or objects like `nn.Callback`.
        seed: seed for the model's random states (of dropout and similar layers); by default they continue.
        precision: "bfloat16" or "float16" for mixed precision: the model and an objective run inside `nn.autocast`, a
            loss does not.  By default, the precision of the `nn.autocast` block that `fit` is called in.  With float16
            the loss is scaled by `optimizer.loss_scale`, which is an `nn.LossScale()` unless you have set it, and a
            step whose gradients overflow is skipped.
        accumulate: number of batches whose mean gradient makes one update.  Batches that are left over at the end of an
            epoch count for the first update of the next epoch.
        check_finite: whether to stop at a loss or gradient that is NaN or infinite.
        progress: whether to show the progress on stderr.
        mesh: a mesh of devices on which the training runs, such as `ft.mesh({"data": 8})`; by default that of a model
            that `nn.shard` has sharded.
        rules: how the model is sharded over the mesh, as for `nn.shard`.  By default it keeps its sharding, or is
            replicated on every device.  The state of the optimizer has the same sharding.
        batch_spec: a spec (`ft.P`) for the arrays of a batch.  By default their first axis is sharded over the mesh
            axis of the rule `nn.fsdp` or `nn.data_parallel`, or, without such a rule, over the first mesh axis that no
            rule uses.
        uneven: what to do with a batch whose samples cannot be divided evenly.  "pad" fills it up to the size of the
            others with samples that do not count, so that one compiled step serves all batches; loss and metrics must
            be means over the samples, and no layer must compute statistics of the batch.  "drop" leaves the batch out.

    Returns:
        The `nn.History`; also after Ctrl-C, which ends the training after the current step and sets `history.stopped`
        to "interrupted".  A second Ctrl-C raises KeyboardInterrupt.

    Raises:
        FloatingPointError: a loss or a gradient was not finite.  An `ftrans.debug.AnomalyError` names the operation,
            the line and the reason; the model is as it was before that step.
        TypeError: `data` does not provide batches.
        ValueError: arguments contradict each other, the checkpoint belongs to another model, optimizer or data, or
            processes would not train the same model.
        RuntimeError: another process has ended.
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

    Several processes (`ft.initialize_processes`) can train one model, on a mesh of the devices of all processes.  Each
    process provides its part of every batch, which `nn.batches` does for you.  If something differs between them, such
    as a seed, an error is raised at the start.  Process 0 shows the progress and writes files; Ctrl-C or SIGTERM in one
    process stops all.

    Cost: losses and metrics are fetched from the device every 16 steps, for the 16 steps before those, so that the host
    waits for no step; batches are kept for that long.  `check_finite` reads the gradients once more in each step, and
    does not copy the parameters.
    """
    if (loss is None) == (objective is None):
        raise ValueError(
            "fit takes exactly one of loss, a function of (output, target), and objective, a function of "
            "(model, *batch)" + at_line(user_line())
        )
    require_module(model, "nn.fit trains")
    for what, f in (("loss", loss), ("objective", objective)):
        if f is not None:
            require_function(what, f)
    if not isinstance(epochs, int | np.integer) or epochs < 1:
        raise ValueError(f"epochs must be a positive integer, not {epochs!r}{at_line(user_line())}")
    functions = named_metrics(metrics)
    if objective is not None and functions:
        raise ValueError(
            "metrics are functions of (output, target), which an objective does not have; return a pair of the loss "
            f"and a dictionary of metrics from the objective{at_line(user_line())}"
        )
    if isinstance(accumulate, bool) or not isinstance(accumulate, int | np.integer) or accumulate < 1:
        raise ValueError(
            f"accumulate must be a number of batches, at least 1, not {accumulate!r}{at_line(user_line())}"
        )
    if resume is True and directory is None:
        raise ValueError(
            f"resume=True continues from the last checkpoint in directory, which was not given{at_line(user_line())}"
        )
    if checkpoint_format not in (None, *FORMATS):
        raise ValueError(
            f"checkpoint_format is {checkpoint_format!r}, but checkpoints are written as {' or '.join(FORMATS)}"
            + at_line(user_line())
        )
    precision = precision_named(product_dtype() if precision is None else precision, "nn.fit")
    measure = Measure(loss, objective, functions, precision)
    monitor = monitor or ("loss" if validation is None else "val_loss")
    names = [*measure.names, *measure.accumulated]
    known = [*names, *(f"val_{name}" for name in names if validation is not None)]
    if objective is None and not callbacks and monitor not in known:
        raise ValueError(f"monitor is {monitor!r}, but an epoch has {', '.join(known)}{at_line(user_line())}")
    source = Source(data, "data", int(epochs), steps_per_epoch)
    validation_source = None if validation is None else Source(validation, "validation", int(epochs))
    settings: dict[str, Any] = {
        "the number of epochs": epochs,
        "steps_per_epoch": steps_per_epoch,
        "save_every": save_every,
    }
    settings |= {
        "patience": patience,
        "check_finite": check_finite,
        "precision": precision,
        "seed": seed,
        **source.facts(),
    }
    # Those by which a process decides whether to do what all of them do together.
    settings |= {"whether there is a directory": directory is not None, "whether to resume": bool(resume)}
    settings |= {"checkpoint_format": checkpoint_format, "monitor": monitor, "mode": mode, "min_delta": min_delta}
    settings |= {"restore_best": restore_best, "batch_spec": batch_spec, "uneven": uneven}
    settings |= {"accumulate": accumulate}
    settings |= {} if validation_source is None else validation_source.facts()
    Together().require_same(model, settings, [loss, objective, *functions.values()])
    placement = placement_for(model, mesh, rules, batch_spec, uneven, measure)
    optimizer = optimizer_for(model, optimizer)
    if precision == "float16" and getattr(optimizer, "loss_scale", None) is None:
        optimizer.loss_scale = LossScale()
    training = Training(
        FitState(model, optimizer, History(), int(epochs), None if directory is None else Path(directory)),
        measure,
        source,
        validation_source,
        Best(monitor, mode, min_delta, patience),
        placement,
    )
    trained = graph_of(model).trained_parameters()
    training.gathered = Gathered(trained if accumulate > 1 else {})
    if placement is not None:
        placement.require_shares(source.shares)
        place_state(training.state.optimizer, trained)
        place_state(training.gathered, trained)
    training.state.history.monitor = monitor
    training.save_every = save_every
    training.checkpoint_format = checkpoint_format
    training.restore_best = restore_best
    training.accumulate = int(accumulate)
    settings_of_step = measure, check_finite, placement is not None and placement.masks, int(accumulate)
    training.step = training_step(*settings_of_step)
    training.gather = training_step(*settings_of_step, updates=False)
    if not training.resume(resume) and seed is not None:
        for number, cell in enumerate(c for _, c in model.named_cells() if isinstance(c, RngState)):
            cell.value = np.append(fold_in(key(seed), number), np.uint32(0))
    if not model.training:
        model.train()
    # What surrounds the model, such as the update, has no part in a block around the call.
    with exact_products():
        return training.run(Callbacks(callbacks), progress)


def optimizer_for(model: Module, given: Any) -> Optimizer:
    """The optimizer of a model for the argument of `fit`."""
    if isinstance(given, Optimizer):
        if not {id(p) for p in given.trained_parameters().values()} <= {id(p) for p in model.parameters()}:
            raise ValueError(
                "the optimizer was made for another model; make it with the parameters of this one"
                + at_line(user_line())
            )
        return given
    if given is None:
        given = adam("nn.fit")(1e-3)
    return Optimizer(model, given)
