"""Names of torch that are missing here, and what to write instead; docs/torch.md has all names."""

from __future__ import annotations

from ..base.source import at_line, user_line

_IN_PLACE = "celu elu hardtanh leaky_relu relu rrelu selu threshold"
_INDICES = [f"{kind}pool{n}d" for kind in ("max_", "adaptive_max_") for n in (1, 2, 3)]

INSTEAD: dict[str, dict[str, str]] = {
    "nn": {
        "CrossMapLRN2d": "nn.LocalResponseNorm(size, alpha, beta, k)",
        "GradScaler": "nn.LossScale(), or nn.fit(precision='float16')",
        "amp": "nn.autocast() and nn.LossScale()",
        "DataParallel": "nn.data_parallel(model), or nn.shard(model, ...) for other placements",
        "NLLLoss2d": "nn.NLLLoss(), which takes images, too",
        "LinearCrossEntropyLoss": "nn.CrossEntropyLoss()(linear(x), target)",
        "UninitializedParameter": "a lazy layer, such as nn.LazyLinear(out_features)",
        "UninitializedBuffer": "a lazy layer, such as nn.LazyLinear(out_features)",
    },
    "nn.functional": {
        **{f"{name}_": f"x = F.{name}(x)" for name in _IN_PLACE.split()},
        **{f"{name}_with_indices": f"F.{name}(x, ..., return_indices=True)" for name in _INDICES},
        "conv_tbc": "F.conv1d of np.transpose(x, (1, 2, 0))",
        "linear_cross_entropy": "F.cross_entropy(F.linear(x, weight, bias), target)",
        "native_channel_shuffle": "F.channel_shuffle(x, groups)",
    },
}


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    instead = INSTEAD[module].get(name)
    hint = f"; write {instead}{at_line(user_line())}" if instead else ""
    return AttributeError(f"module 'ftrans.{module}' has no attribute {name!r}{hint}", name=name)
