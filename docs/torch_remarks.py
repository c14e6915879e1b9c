"""What docs/make_torch.py cannot see in the code: other names for what torch has, and what to write instead."""

from __future__ import annotations

_F = "torch.nn.functional"
_INDICES = {
    f"{_F}.{kind}_pool{n}d_with_indices": f"`nn.functional.{kind}_pool{n}d`; with `return_indices=True`"
    for kind, counts in (("max", (1, 2, 3)), ("adaptive_max", (1, 2, 3)), ("fractional_max", (2, 3)))
    for n in counts
}
_OLD_INIT = (
    "constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform xavier_normal xavier_uniform"
)
_DRAWN = "kaiming_normal kaiming_uniform normal orthogonal sparse trunc_normal uniform xavier_normal xavier_uniform"
_IN_PLACE = "celu elu hardtanh leaky_relu relu rrelu selu threshold"

# Other names, and remarks behind a semicolon.
OTHERWISE: dict[str, str] = {
    "torch.nn.CrossMapLRN2d": "`nn.LocalResponseNorm`",
    "torch.nn.DataParallel": "`nn.data_parallel`; or `nn.shard`, which puts one model on a mesh of devices",
    "torch.nn.NLLLoss2d": "`nn.NLLLoss`; also takes images",
    "torch.nn.Container": "`nn.Module`",
    "torch.nn.LinearCrossEntropyLoss": "`nn.CrossEntropyLoss`; after `nn.Linear`: `nn.jit` fuses both",
    "torch.nn.Module.compile": "`nn.jit`; compile a whole step, as a function of the model",
    "torch.nn.Module.register_backward_hook": "`register_full_backward_hook`",
    "torch.nn.Module.to_empty": "`to`",
    "torch.nn.Module.type": "`to`",
    f"{_F}.linear_cross_entropy": "`nn.functional.cross_entropy`; after `nn.functional.linear`: `nn.jit` fuses both",
    f"{_F}.native_channel_shuffle": "`nn.functional.channel_shuffle`",
    f"{_F}.conv_tbc": "`nn.functional.conv1d`; with the axes moved: `np.transpose(x, (1, 2, 0))`",
    **_INDICES,
    **{f"torch.nn.init.{name}": f"`nn.init.{name}_`" for name in _OLD_INIT.split()},
    "torch.nn.utils.clip_grad_norm": "`nn.utils.clip_grad_norm_`",
    "torch.optim.Optimizer": "`nn.Optimizer`; takes any transformation of Optax",
    "torch.optim.Adafactor": "`nn.Optimizer`; with `optax.adafactor`",
    "torch.optim.Muon": "`nn.Optimizer`; with `optax.contrib.muon`",
    "torch.optim.SparseAdam": "`nn.optim.Adam`; gradients are dense",
    "torch.optim.swa_utils.AveragedModel": "`nn.EMA`",
    "torch.optim.swa_utils.get_ema_avg_fn": "`nn.EMA`; with `decay=`",
    "torch.optim.swa_utils.get_ema_multi_avg_fn": "`nn.EMA`; with `decay=`",
    "torch.autograd.Variable": "`autograd.tensor`",
    "torch.autograd.variable": "`autograd.tensor`",
    "torch.autograd.forward_ad.make_dual": "`ft.jvp`; takes the function, values and tangents",
    "torch.autograd.forward_ad.unpack_dual": "`ft.jvp`; returns values and tangents",
    "torch.autograd.graph.GradientEdge": "`autograd.Node`; from `x.grad_fn`",
    "torch.autograd.graph.get_gradient_edge": "`x.grad_fn`",
    "torch.autograd.graph.save_on_cpu": "`nn.checkpoint`",
}

# What to write instead of a missing name.
INSTEAD: dict[str, str] = {
    "torch.nn.LinearCrossEntropyOptions": "nothing: XLA chooses its kernels",
    "torch.nn.UninitializedBuffer": "a lazy layer, such as `nn.LazyLinear`, which makes its parameters when called",
    "torch.nn.UninitializedParameter": "a lazy layer, such as `nn.LazyLinear`, which makes its parameters when called",
    "torch.nn.RNNBase": "a subclass of `nn.Module` that calls `nn.functional.rnn`, `lstm` or `gru`",
    "torch.nn.RNNCellBase": "a subclass of `nn.Module` that calls `nn.functional.rnn_cell`, `lstm_cell` or `gru_cell`",
    "torch.nn.Module.share_memory": "nothing: threads share a model, and each process has its own (docs/scale.md)",
    **{f"{_F}.{name}_": f"`x = nn.functional.{name}(x)`" for name in _IN_PLACE.split()},
    f"{_F}.grouped_mm": "a loop of `a[i:j] @ b[k]`, or `np.einsum` for groups of one size",
    f"{_F}.scaled_grouped_mm": "`a.astype(np.float32) * scale` before the product",
    f"{_F}.scaled_mm": "`a.astype(np.float32) * scale` before the product",
    "torch.nn.utils.convert_conv2d_weight_memory_format": "nothing: XLA chooses the layout of arrays",
    "torch.nn.utils.convert_conv3d_weight_memory_format": "nothing: XLA chooses the layout of arrays",
    "torch.optim.swap_in_optimizer_params_and_state": "`nn.functional_call` with the arrays to use",
    "torch.optim.swa_utils": "`ema = nn.EMA(model)`, `ema.update()` after each step, `with ema.applied():` to evaluate",
    "torch.optim.swa_utils.update_bn": "`model.train()`, then call the model on the batches again",
    "torch.distributions.ExponentialFamily": "a subclass of `nn.distributions.Distribution` with its own `entropy`",
    "torch.distributions.constraints.dependent": "the constraint itself, created in `__init__` or in a property",
    "torch.distributions.constraints.dependent_property": "a property that returns the constraint",
    "torch.distributions.constraints.is_dependent": "nothing: constraints are made from the actual parameters",
    "torch.distributions.constraints.MixtureSameFamilyConstraint": "`mixture.component_distribution.support`",
    "torch.utils.data.IterDataPipe": "`nn.data.IterableDataset`, or any generator",
    "torch.utils.data.MapDataPipe": "`nn.data.Dataset`",
    "torch.autograd.set_multithreading_enabled": "nothing: several threads can differentiate at the same time",
    "torch.autograd.forward_ad": "`ft.jvp(f, primals, tangents)`, which takes a function",
    "torch.autograd.graph.saved_tensors_hooks": "`nn.checkpoint(f)`, or an `autograd.Function`",
    "torch.autograd.graph.disable_saved_tensors_hooks": "nothing: there are no such hooks",
    "torch.autograd.graph.register_multi_grad_hook": "`x.register_hook(f)` of each tensor",
    "torch.autograd.graph.allow_mutation_on_saved_tensors": "`x.clone()` before the change",
    "torch.autograd.graph.increment_version": "nothing: ftrans notices every change of a tensor",
}

# About names that are the same.
REMARKS: dict[str, str] = {
    "torch.utils.data.DataLoader": "batches are Tensors if samples hold Tensors, or with `tensors=True`",
    **dict.fromkeys(
        [f"torch.nn.init.{name}_" for name in _DRAWN.split()],
        "pass `rng=`, a NumPy generator, instead",
    ),
    "torch.nn.Embedding": "`Embedding.from_pretrained(table, freeze=False)`",
    "torch.nn.EmbeddingBag": "`EmbeddingBag.from_pretrained(table, freeze=False)`",
    f"{_F}.embedding": "`max_norm` does not change the table; `nn.Embedding` does",
    f"{_F}.embedding_bag": "`scale_grad_by_freq` follows the documentation; torch 2.13 computes something else",
    **dict.fromkeys(
        [f"{_F}.max_unpool{n}d" for n in (1, 2, 3)],
        "if an index occurs twice, only the last value gets a gradient; in torch, each value does",
    ),
    f"{_F}.multi_head_attention_forward": "the order of arguments differs: pass them by name",
}
