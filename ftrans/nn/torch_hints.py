"""Names of torch that are missing here, and what to write instead; docs/torch.md has all names."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..base.source import at_line, user_line

_IN_PLACE = "celu elu hardtanh leaky_relu relu rrelu selu threshold"
_INDICES = [f"{kind}pool{n}d" for kind in ("max_", "adaptive_max_") for n in (1, 2, 3)]
_INDICES += ["fractional_max_pool2d", "fractional_max_pool3d"]
_INITIAL = "constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform"
_INITIAL += " xavier_normal xavier_uniform"
_LAYOUT = "nothing: XLA chooses the layout of arrays"

INSTEAD: dict[str, dict[str, str]] = {
    "nn": {
        "CrossMapLRN2d": "nn.LocalResponseNorm(size, alpha, beta, k)",
        "GradScaler": "nn.LossScale(), or nn.fit(precision='float16')",
        "amp": "nn.autocast() and nn.LossScale()",
        **{name: f"ft.autograd.{name}" for name in ("Tensor", "cuda", "device", "no_grad", "tensor")},
        **{name: f"nn.functional.{name}" for name in ("relu", "sigmoid", "softmax", "tanh")},
        **{name: f"nn.optim.{name}" for name in ("Adam", "AdamW", "SGD")},
        **{name: f"nn.data.{name}" for name in ("DataLoader", "Dataset", "TensorDataset")},
        "DataParallel": "nn.data_parallel(model), or nn.shard(model, ...) for other placements",
        "NLLLoss2d": "nn.NLLLoss(), which takes images, too",
        "LinearCrossEntropyLoss": "nn.CrossEntropyLoss()(linear(x), target)",
        "Container": "nn.Module",
        "LinearCrossEntropyOptions": "nothing: XLA chooses the kernels",
        "RNNBase": "a class of nn.Module with F.rnn, F.lstm or F.gru",
        "RNNCellBase": "a class of nn.Module with F.rnn_cell, F.lstm_cell or F.gru_cell",
        "UninitializedParameter": "a lazy layer, such as nn.LazyLinear(out_features)",
        "UninitializedBuffer": "a lazy layer, such as nn.LazyLinear(out_features)",
    },
    "nn.functional": {
        **{f"{name}_": f"x = F.{name}(x)" for name in _IN_PLACE.split()},
        **{f"{name}_with_indices": f"F.{name}(x, ..., return_indices=True)" for name in _INDICES},
        "conv_tbc": "F.conv1d of np.transpose(x, (1, 2, 0))",
        "linear_cross_entropy": "F.cross_entropy(F.linear(x, weight, bias), target)",
        "native_channel_shuffle": "F.channel_shuffle(x, groups)",
        "grouped_mm": "a loop of a[i:j] @ b[k], or np.einsum for groups of one size",
        "scaled_grouped_mm": "a.astype(np.float32) * scale before the product",
        "scaled_mm": "a.astype(np.float32) * scale before the product",
    },
    "nn.init": {name: f"nn.init.{name}_" for name in _INITIAL.split()},
    "nn.utils": {
        "data": "nn.data",
        "clip_grad_norm": "nn.utils.clip_grad_norm_(parameters, max_norm)",
        "convert_conv2d_weight_memory_format": _LAYOUT,
        "convert_conv3d_weight_memory_format": _LAYOUT,
    },
    "nn.optim": {
        "Adafactor": "nn.Optimizer(model, optax.adafactor(...))",
        "Muon": "nn.Optimizer(model, optax.contrib.muon(...))",
        "Optimizer": "nn.Optimizer(model, transformation), of any transformation of optax",
        "SparseAdam": "nn.optim.Adam, since gradients here are dense",
        "swa_utils": "nn.EMA(model) for averages of parameters, and nn.optim.lr_scheduler.LambdaLR for the rate",
        "swap_in_optimizer_params_and_state": "nn.functional_call(model, arrays, ...)",
    },
    "nn.distributions": {"ExponentialFamily": "a class of Distribution with its entropy in closed form"},
    "nn.data": {
        "IterDataPipe": "nn.data.IterableDataset, or any iterable",
        "MapDataPipe": "nn.data.Dataset",
    },
}

_OF_UTILS = {
    "checkpoint": "nn.checkpoint(f)(x) for checkpoint(f, x)",
    "tensorboard": "nn.callbacks.TensorBoardLogger for nn.fit, or tensorboardX",
    "clip_grad_norm_": "nn.utils.clip_grad_norm_",
    "benchmark": "timeit",
}


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    instead = INSTEAD[module].get(name)
    return AttributeError(f"module 'ftrans.{module}' has no attribute {name!r}{_hint(instead)}", name=name)


def _hint(instead: str | None) -> str:
    """What to write instead, where that is known."""
    return f"; write {instead}{at_line(user_line())}" if instead else ""


class TorchUtils:
    """What programs of torch find under `torch.utils`.

    Args:
        data: the module of data sets and loaders.
    """

    def __init__(self, data: ModuleType) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no torch.utils.{name} here{_hint(_OF_UTILS.get(name))}", name=name)
