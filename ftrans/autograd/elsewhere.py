"""Names of torch that are in other places here: modules that `ftrans.nn` provides, and what to write for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.source import at_line, user_line

# Modules of torch that `ftrans.nn`, a layer above this one, provides when it is imported: functions that return them.
PROVIDED: dict[str, Callable[[], Any]] = {}

_OF_LAYERS = (
    "alpha_dropout batch_norm bilinear binary_cross_entropy_with_logits celu conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity ctc_loss dropout embedding embedding_bag group_norm "
    "instance_norm kl_div layer_norm max_pool1d max_pool2d pairwise_distance pdist pixel_shuffle prelu rrelu selu "
    "threshold"
)
_ELSEWHERE = {
    **{name: f"nn.functional.{name}" for name in _OF_LAYERS.split()},
    "nn": "from ftrans import nn, after which torch.nn is there, too",
    "optim": "from ftrans.nn import optim", "utils": "from ftrans.nn import utils",
    "distributions": "from ftrans.nn import distributions", "compile": "nn.jit(model)",
    "vmap": "ft.vmap or nn.vmap, with in_axes= and out_axes= for in_dims= and out_dims=",
    "func": "ft.grad, ft.vmap (with in_axes= for in_dims=) and nn.functional_call",
    "save": "nn.save(path, model.state_dict()), the path first; or pickle", "load": "nn.load(path), or pickle",
    "amp": "nn.autocast and nn.LossScale", "onnx": "ft.to_onnx", "profiler": "ft.debug.profile or nn.profile_step",
    "distributed": "nn.data_parallel(model), or nn.shard", "multiprocessing": "multiprocessing of Python",
    "autocast": "nn.autocast", "jit": "nn.jit", "random": "manual_seed of ftrans.autograd",
    "linalg": "numpy.linalg, whose functions take tensors", "fft": "numpy.fft, whose functions take tensors",
    "special": "scipy.special, whose functions take tensors",
    "Generator": "numpy.random.default_rng(seed), which generator= takes",
    "backends": "nothing: there are no switches of kernels",
    "set_num_threads": "nothing: NumPy's threads are set by OPENBLAS_NUM_THREADS in the environment",
    "FloatTensor": "tensor(data, dtype=float32), or float32 where it stands for a dtype",
    "DoubleTensor": "tensor(data, dtype=float64), or float64 where it stands for a dtype",
    "LongTensor": "tensor(data, dtype=int64), or int64 where it stands for a dtype",
    "Variable": "tensor(data), which needs no wrapper", "Size": "tuple", "dtype": "numpy.dtype",
    "set_multithreading_enabled": "nothing: threads may differentiate at the same time",
    "var_mean": "x.var(dim=...) and x.mean(dim=...)", "std_mean": "x.std(dim=...) and x.mean(dim=...)",
    "block_diag": "scipy.linalg.block_diag", "chain_matmul": "numpy.linalg.multi_dot", "rsub": "y - x",
    "complex": "real + 1j * imag", "polar": "abs * np.exp(1j * angle)", "is_nonzero": "bool(x)",
    "combinations": "itertools.combinations", "randint_like": "randint(low, high, x.shape)",
    "hann_window": "scipy.signal.windows.hann", "hamming_window": "scipy.signal.windows.hamming",
}  # fmt: skip


def found_elsewhere(module: str, name: str) -> Any:
    """What a name of torch means that `ftrans.autograd` does not have itself.

    Raises:
        AttributeError: there is no such thing; the message says what to write instead.
    """
    if name == "autograd":
        return sys.modules[module]
    if name in PROVIDED:
        return PROVIDED[name]()
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    instead, of_numpy = _ELSEWHERE.get(name), getattr(np, name, None)
    if instead is None and callable(of_numpy) and not isinstance(of_numpy, type):
        instead = f"np.{name}, which takes tensors"
    end = "" if instead is None else f"; write {instead}{at_line(user_line())}"
    raise AttributeError(f"module {module!r} has no attribute {name!r}{end}", name=name)
