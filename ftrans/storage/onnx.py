"""to_onnx: a function as a model in the ONNX format, for runtimes that know nothing of JAX.

The package jax2onnx converts the program, operation by operation.  What comes out is run by onnxruntime on the example
arguments, and compared, before anybody gets it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base import tree
from ..base.interrupts import uninterrupted
from ..base.source import at_line, user_line
from ..base.surroundings import NeedsHost, exporting
from ..nn.training.files import replacing
from ..xla import about_to_run
from .lowering import Portable, needs_host, portable
from .signature import Leaf

# No rule has a lowering of its own for it, so that each takes the plain one.
_PLATFORM = ("onnx",)
# Rows of the batch that a model is tried with.
_ROWS = 2


def to_onnx(
    f: Callable[..., Any],
    *args: Any,
    batch: int | Sequence[int] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Convert a function to an ONNX model.

    Arrays that `f` closes over, such as the parameters of a module, are initializers of the model; derivatives that
    ftrans takes in `f` are part of it.  The model is run by onnxruntime on `args`, and its results are compared with
    those of `f`.

    Args:
        f: the function.
        args: arguments of the shapes and dtypes that the model will be called with, in tuples, lists, dicts and
            NamedTuples.
        batch: positions of arguments that will get a leading axis of any length, over which `f` is mapped; `f` and
            `args` are those of one row.  All results get the axis, too.
        path: a file to write the model to.

    Returns:
        An `onnx.ModelProto`.  The inputs are the arrays of the arguments, called `argument_0`, or `argument_0.key` in
        containers; the outputs are those of the result, called `result` or `result.key`.

    Raises:
        TypeError: as `ft.export`.
        ValueError: there is no such position, or a result of the model is not that of `f`.
        NotImplementedError: `f` calls Python code on the host, or has an operation that jax2onnx or onnxruntime do not
            have.
        ImportError: the packages jax2onnx or onnxruntime are missing.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> model = ft.to_onnx(np.tanh, np.ones(3))  # doctest: +SKIP
        >>> onnx.save(model, "tanh.onnx")  # doctest: +SKIP
    """
    converter = _packages()[0]
    taken = portable("to_onnx", f, args, batch)
    model = _converted(converter, taken)
    _check(taken, model, [np.asarray(x) for x in tree.flatten(args)[0]])
    if path is not None:
        with replacing(path) as file:
            file.write(model.SerializeToString())
    return model


def _packages() -> tuple[Any, Any]:
    try:
        import jax2onnx
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f"to_onnx needs the package {error.name}: pip install 'ftrans[onnx]'{at_line(user_line())}"
        ) from None
    return jax2onnx, onnxruntime


@uninterrupted
def _converted(converter: Any, taken: Portable) -> Any:
    about_to_run()
    import jax
    import jax.export

    (batch,) = jax.export.symbolic_shape("batch")
    leaves = taken.arguments.leaves
    function, constants = taken.function(), taken.stored()
    dtypes = {leaf.dtype for leaf in (*leaves, *taken.results.leaves)} | {x.dtype for x in constants}
    wide = not dtypes.isdisjoint([np.dtype(np.float64), np.dtype(np.complex128)])
    with _setting_kept(), jax.enable_x64(True), exporting(_PLATFORM):
        inputs = [
            jax.ShapeDtypeStruct(tuple(batch if n == "batch" else n for n in leaf.shape), leaf.dtype) for leaf in leaves
        ]
        try:
            return converter.to_onnx(
                lambda *arrays: tuple(function(constants, list(arrays))),
                inputs,
                model_name=taken.name,
                enable_double_precision=wide,
                input_names=[f"argument_{_name(leaf)}" for leaf in leaves],
                output_names=[_name(leaf, "result") for leaf in taken.results.leaves],
            )
        except NeedsHost as error:
            raise needs_host(f"to_onnx of {taken.name}", error) from None
        except Exception as error:
            raise NotImplementedError(
                f"to_onnx of {taken.name}: jax2onnx cannot convert it ({type(error).__name__}: {error}); ft.export "
                f"stores what runs by JAX{at_line(user_line())}"
            ) from error


@contextmanager
def _setting_kept() -> Iterator[None]:
    """Keep whether JAX computes in 64 bits: jax2onnx puts what a thread sees in the place of the setting of all."""
    import jax

    config: Any = jax.config
    with ThreadPoolExecutor(1) as other:
        before = other.submit(lambda: config.jax_enable_x64).result()
    try:
        yield
    finally:
        config.update("jax_enable_x64", before)


def _name(leaf: Leaf, prefix: str = "") -> str:
    """The path of an array as a name: `[0]['a']` is `0.a`."""
    keys = leaf.path.replace("'", "").replace("[", ".").replace("]", "")
    return (prefix + keys).removeprefix(".")


def _check(taken: Portable, model: Any, arrays: Sequence[Any]) -> None:
    """Compare the results of a model with those of the function."""
    runtime = _packages()[1]
    found = _run(runtime, taken, model, arrays)
    expected = taken.program(*arrays, *taken.constants)
    for leaf, x, y in zip(taken.results.leaves, found, expected, strict=True):
        y = np.broadcast_to(y, (_ROWS, *np.shape(y))) if "batch" in leaf.shape else np.asarray(y)
        tolerance = 1e-8 if y.dtype in (np.float64, np.complex128) else 1e-3
        size = np.max(np.abs(y), initial=1.0, where=np.isfinite(y))
        if x.shape != y.shape or not np.allclose(x, y, tolerance, tolerance * size, equal_nan=True):
            raise ValueError(
                f"to_onnx of {taken.name}: the model gives other values than the function, for {_name(leaf, 'result')} "
                f"of the arguments given here; ft.export stores what runs by JAX{at_line(user_line())}"
            )


def _run(runtime: Any, taken: Portable, model: Any, arrays: Sequence[Any]) -> list[Any]:
    """The results of a model, of as many equal rows if it has a batch."""
    rows = [
        np.broadcast_to(x, (_ROWS, *x.shape)).astype(x.dtype) if b else x
        for x, b in zip(arrays, taken.batched, strict=True)
    ]
    options = runtime.SessionOptions()
    # It warns of what jax2onnx has left over.
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        given = {i.name for i in session.get_inputs()}
        named = {f"argument_{_name(leaf)}": x for leaf, x in zip(taken.arguments.leaves, rows, strict=True)}
        return list(session.run(None, {name: x for name, x in named.items() if name in given}))
    except Exception as error:
        raise NotImplementedError(
            f"to_onnx of {taken.name}: onnxruntime cannot run the model ({type(error).__name__}: {error}); ft.export "
            f"stores what runs by JAX{at_line(user_line())}"
        ) from error
