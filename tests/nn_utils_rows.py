"""What `ftrans.nn.utils` and `torch.nn.utils` make of the same models: rows that run in either library.

`python tests/nn_utils_rows.py`, where torch is installed, writes what torch computes to `nn_utils_figures.json`.
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FIGURES = Path(__file__).with_name("nn_utils_figures.json")


class Row(NamedTuple):
    """A model, given `nn` of a library; and its result for some inputs, given `nn`, the model and arrays."""

    name: str
    build: Callable[[Any], Any]
    inputs: tuple[tuple[int, ...], ...]
    forward: Callable[..., Any] = lambda nn, model, *xs: model(*xs)
    # Whether it is compiled in the short suite.
    compiled: bool = False
    # Whether it can be pickled: its classes are not local ones.
    pickled: bool = True

    def arrays(self) -> list[np.ndarray]:
        """The inputs."""
        rng = np.random.default_rng(len(self.name))
        return [rng.normal(size=shape) for shape in self.inputs]


def filled(model: Any) -> Any:
    """The model in float64, with certain numbers in its state."""
    model = model.double()
    state = {}
    for path, x in model.state_dict().items():
        array = np.asarray(x)
        rng = np.random.default_rng(zlib.crc32(path.encode()))
        state[path] = rng.normal(size=array.shape).astype(array.dtype) if array.dtype.kind == "f" else array
    return loaded(model, state)


def loaded(model: Any, state: dict[str, np.ndarray]) -> Any:
    """A model of either library with this state."""
    if type(model).__module__.startswith("torch"):
        import torch

        state = {path: torch.tensor(x) for path, x in state.items()}
    model.load_state_dict(state)
    return model


def leaves(x: Any) -> list[Any]:
    """The arrays in a result."""
    if isinstance(x, tuple | list):
        return [leaf for y in x for leaf in leaves(y)]
    return [] if x is None else [x]


def total(out: Any, sin: Any) -> Any:
    """A number that depends on all elements of a result."""
    return sum(sin(leaf).sum() for leaf in leaves(out) if "float" in str(leaf.dtype))


LENGTHS = [2, 4, 1]


def recurrent(kind: str, **options: Any) -> Row:
    """A recurrent layer over packed sequences of unsorted lengths."""

    def forward(nn: Any, model: Any, x: Any, h: Any) -> Any:
        rnn = nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
        states = h[..., : options.get("proj_size", 3)]
        out, last = model(packed, (states, 2 * h) if kind == "LSTM" else h)
        padded, _ = rnn.pad_packed_sequence(out, batch_first=True, padding_value=0.5, total_length=5)
        return out.data, padded, last

    layers = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    return Row(
        f"{kind} of packed sequences {options}",
        lambda nn: filled(getattr(nn, kind)(2, 3, **options)),
        ((3, 4, 2), (layers, 3, 3)),
        forward,
        compiled=kind == "GRU",
    )


def sequences(nn: Any, model: Any, x: Any) -> Any:
    """All functions of sequences."""
    rnn = nn.utils.rnn
    given = [x[:3, 0], x[:, 1], x[1:2, 2]]
    packed = rnn.pack_sequence(given, enforce_sorted=False)
    sorted_ones = rnn.pack_padded_sequence(x, [4, 2, 2])
    return (
        rnn.pad_sequence(given, padding_value=-1.0),
        rnn.pad_sequence(given, batch_first=True, padding_side="left"),
        packed.data,
        packed.batch_sizes * 1.0,
        packed.sorted_indices * 1.0,
        packed.unsorted_indices * 1.0,
        rnn.invert_permutation(packed.sorted_indices) * 1.0,
        rnn.unpack_sequence(packed),
        rnn.unpad_sequence(*rnn.pad_packed_sequence(packed)),
        sorted_ones.data,
        rnn.pad_packed_sequence(sorted_ones)[1] * 1.0,
        model(x),
    )


def normed(function: str, **options: Any) -> Callable[[Any, Any], Any]:
    """A parametrization of that name applied to a layer."""
    return lambda nn, layer: filled(getattr(nn.utils.parametrizations, function)(layer, **options))


def twice(nn: Any, model: Any, x: Any) -> Any:
    """Two calls, between which buffers change, and the weight itself."""
    return model(x), model(2 * x), model.eval().weight, model.train().bias


def symmetric(nn: Any) -> Any:
    """A matrix with two parametrizations, the first of which knows its inverse."""

    class Symmetric(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + x.T

        def right_inverse(self, x: Any) -> Any:
            return x / 2

    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shift = nn.Parameter(nn.Linear(1, 3).weight.data)

        def forward(self, x: Any) -> Any:
            return x + self.shift

    layer = filled(nn.Linear(3, 3))
    nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    nn.utils.parametrize.register_parametrization(layer, "weight", Shifted())
    return filled(layer)


PARAMETRIZED = [
    Row("two parametrizations", symmetric, ((2, 3),), pickled=False),
    Row("weight_norm", lambda nn: normed("weight_norm")(nn, nn.Linear(3, 2)), ((4, 3),), twice),
    Row("weight_norm of all", lambda nn: normed("weight_norm", dim=None)(nn, nn.Linear(3, 2)), ((4, 3),)),
    Row("weight_norm of columns", lambda nn: normed("weight_norm", dim=1)(nn, nn.Conv1d(2, 3, 2)), ((1, 2, 3),)),
    Row(
        "weight_norm of a recurrent layer",
        lambda nn: normed("weight_norm", name="weight_hh_l0")(nn, nn.GRU(2, 3)),
        ((3, 1, 2),),
    ),
    Row("spectral_norm", lambda nn: normed("spectral_norm")(nn, nn.Linear(3, 2)), ((4, 3),), twice, compiled=True),
    Row(
        "spectral_norm of a transposed convolution",
        lambda nn: normed("spectral_norm", n_power_iterations=2, eps=1e-3)(nn, nn.ConvTranspose1d(2, 3, 2)),
        ((1, 2, 3),),
    ),
    Row("spectral_norm of a vector", lambda nn: normed("spectral_norm", name="bias")(nn, nn.Linear(3, 2)), ((4, 3),)),
    Row("orthogonal", lambda nn: normed("orthogonal")(nn, nn.Linear(3, 3)), ((4, 3),), compiled=True),
    Row("orthogonal, tall", lambda nn: normed("orthogonal")(nn, nn.Linear(2, 4)), ((4, 2),)),
    Row(
        "orthogonal by Cayley maps",
        lambda nn: normed("orthogonal", orthogonal_map="cayley")(nn, nn.Linear(4, 2)),
        ((4, 4),),
    ),
    Row(
        "orthogonal, tall, by exponentials",
        lambda nn: normed("orthogonal", orthogonal_map="matrix_exp", use_trivialization=False)(nn, nn.Linear(2, 3)),
        ((4, 2),),
    ),
    Row(
        "orthogonal, of reflections",
        lambda nn: nn.utils.parametrizations.orthogonal(
            filled(nn.Linear(4, 2)), orthogonal_map="householder", use_trivialization=False
        ),
        ((4, 4),),
    ),
    Row(
        "weight_norm of attention",
        lambda nn: normed("weight_norm", name="in_proj_weight")(nn, nn.MultiheadAttention(2, 1)),
        ((3, 1, 2),),
        lambda nn, model, x: model(x, x, x)[0],
    ),
    Row(
        "weight_norm of a table",
        lambda nn: normed("weight_norm")(nn, nn.Embedding(3, 2, padding_idx=0)),
        ((2, 2),),
        lambda nn, model, x: model((x > 0).long() + (x > 0.5).long()),
    ),
    Row("older weight_norm", lambda nn: filled(nn.utils.weight_norm(nn.Conv2d(1, 2, 2))), ((1, 1, 3, 3),)),
    Row("older spectral_norm", lambda nn: filled(nn.utils.spectral_norm(nn.Linear(3, 2))), ((4, 3),), twice),
]

ROWS = [
    *PARAMETRIZED,
    recurrent("LSTM", num_layers=2, bidirectional=True),
    recurrent("LSTM", num_layers=2, proj_size=2, bias=False),
    recurrent("GRU", bidirectional=True),
    recurrent("RNN", nonlinearity="relu", num_layers=2),
    Row("sequences", lambda nn: filled(nn.Linear(2, 1)), ((4, 3, 2),), sequences),
]


# Functions without a forward pass: arrays, given `nn` of a library and what makes its tensors.

GRADIENTS = [np.array([3.0, -4.0]), np.array([[0.5, 12.0]])]


def clipped(clip: Callable[[Any, list[Any]], Any]) -> Callable[[Any, Any], Any]:
    """What a function returns for parameters, and their gradients then."""

    def call(nn: Any, tensor: Any) -> Any:
        parameters = [nn.Parameter(tensor(g)) for g in [*GRADIENTS, GRADIENTS[0]]]
        for p, g in zip(parameters, GRADIENTS, strict=False):
            p.grad = tensor(g)
        return [clip(nn.utils, parameters), *[p.grad for p in parameters]]

    return call


def fused(layer: str, norm: str, **options: Any) -> Callable[[Any, Any], Any]:
    """Weight and bias of a layer that a batch normalization is fused with."""

    def call(nn: Any, tensor: Any) -> Any:
        made, bn = filled(eval(layer, vars(nn))).eval(), filled(eval(norm, vars(nn))).eval()
        if bn.running_var is not None:
            loaded(bn, {k: np.abs(np.asarray(x)) for k, x in bn.state_dict().items()})
        fuse = nn.utils.fuse_linear_bn_eval if "Linear" in layer else nn.utils.fuse_conv_bn_eval
        new = fuse(made, bn, **options)
        return [new.weight, new.bias]

    return call


def vectors(nn: Any, tensor: Any) -> Any:
    """Parameters as a vector and back."""
    model = filled(nn.Linear(3, 2))
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(2 * vector, model.parameters())
    return [vector, model.weight, model.bias]


def stateless(nn: Any, tensor: Any) -> Any:
    """A call with other arrays."""
    model = filled(nn.BatchNorm1d(2))
    given = {"weight": tensor(np.array([1.0, 2.0])), "running_mean": tensor(np.array([3.0, 4.0]))}
    out = nn.utils.stateless.functional_call(model, given, (tensor(np.arange(6.0).reshape(3, 2)),))
    return [out, given["running_mean"], model.running_var, model.running_mean]


def pruned(*steps: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """What is left of a weight after some steps of pruning, given `prune` and the layer; its mask; and after that."""

    def call(nn: Any, tensor: Any) -> Any:
        layer = filled(nn.Linear(4, 3))
        for step in steps:
            step(nn.utils.prune, layer)
        found = [layer.weight, layer.weight_mask, layer.weight_orig, layer(tensor(np.ones((1, 4))))]
        return [*found, nn.utils.prune.remove(layer, "weight").weight]

    return call


def pruned_together(nn: Any, tensor: Any) -> Any:
    """Several parameters pruned as one, one of which has a mask."""
    first, second = filled(nn.Linear(4, 3)), filled(nn.Linear(2, 2))
    prune = nn.utils.prune
    prune.l1_unstructured(first, "weight", 3)
    scores = {(second, "bias"): tensor(np.array([0.01, 5.0]))}
    places = [(first, "weight"), (second, "weight"), (second, "bias")]
    prune.global_unstructured(places, prune.L1Unstructured, scores, amount=0.4)
    method = prune.LnStructured(1, n=2, dim=0)
    return [first.weight, second.weight, second.bias, method.prune(first.weight_orig)]


SCORES = np.arange(12.0).reshape(3, 4) % 7 + np.arange(12).reshape(3, 4) / 100

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "clip_grad_norm_": clipped(lambda utils, ps: utils.clip_grad_norm_(ps, 2.0)),
    "clip_grad_norm_ of one": clipped(lambda utils, ps: utils.clip_grad_norm_(ps[0], 2.0, norm_type=1)),
    "clip_grad_norm_ by the largest": clipped(lambda utils, ps: utils.clip_grad_norm_(ps, 6.0, float("inf"))),
    "clip_grad_norm_ of order 3": clipped(lambda utils, ps: utils.clip_grad_norm_(ps, 6.0, 3.0)),
    "clip_grad_norm_ of order 0": clipped(lambda utils, ps: utils.clip_grad_norm_(ps, 1.5, 0)),
    "clip_grad_norm_ of small ones": clipped(lambda utils, ps: utils.clip_grad_norm_(ps, 100.0)),
    "clip_grad_norm_ of none": clipped(lambda utils, ps: utils.clip_grad_norm_(ps[2:], 1.0)),
    "clip_grad_value_": clipped(lambda utils, ps: utils.clip_grad_value_(ps, 3.5)),
    "clip_grads_with_norm_": clipped(
        lambda utils, ps: utils.clip_grads_with_norm_(ps, 1.0, utils.get_total_norm([ps[0].grad], -float("inf")))
    ),
    "fuse_conv_bn_eval": fused("Conv2d(2, 3, 2)", "BatchNorm2d(3)"),
    "fuse_conv_bn_eval with groups": fused("Conv1d(2, 4, 2, groups=2, bias=False)", "BatchNorm1d(4, affine=False)"),
    "fuse_conv_bn_eval transposed": fused("ConvTranspose1d(2, 3, 2)", "BatchNorm1d(3)", transpose=True),
    "fuse_linear_bn_eval": fused("Linear(3, 2)", "BatchNorm1d(2)"),
    "fuse_linear_bn_eval of one": fused("Linear(3, 2)", "BatchNorm1d(1)"),
    "vectors": vectors,
    "l1_unstructured": pruned(lambda prune, m: prune.l1_unstructured(m, "weight", 0.3)),
    "l1_unstructured twice": pruned(*[lambda prune, m: prune.l1_unstructured(m, "weight", amount=0.5)] * 2),
    "ln_structured": pruned(lambda prune, m: prune.ln_structured(m, "weight", 2, n=1, dim=1)),
    "ln_structured of all orders": pruned(
        *[lambda prune, m, n=n: prune.ln_structured(m, "weight", 1, n, 1) for n in (float("inf"), -float("inf"), 3)]
    ),
    "pruned in several ways": pruned(
        lambda prune, m: prune.l1_unstructured(m, "weight", 4),
        lambda prune, m: prune.ln_structured(m, "weight", amount=0.25, n=2, dim=-1),
        lambda prune, m: prune.ln_structured(m, "weight", amount=1, n=2, dim=0),
        lambda prune, m: prune.l1_unstructured(m, "weight", 1),
    ),
    "custom_from_mask": pruned(
        lambda prune, m: prune.identity(m, "weight"),
        lambda prune, m: prune.custom_from_mask(m, "weight", m.weight_mask * (m.weight_orig > 0)),
    ),
    "pruned together": pruned_together,
    "stateless": stateless,
}


def figures_of_torch() -> dict[str, Any]:
    """For each row: results, gradients and the state afterwards."""
    import torch
    import torch.nn.utils.prune

    warnings.simplefilter("ignore")
    figures = {}
    for row in ROWS:
        model = row.build(torch.nn)
        inputs = [torch.tensor(x, requires_grad=True) for x in row.arrays()]
        out = row.forward(torch.nn, model, *inputs)
        total(out, torch.sin).backward()
        figures[row.name] = {
            "out": [rounded(leaf.detach()) for leaf in leaves(out)],
            "inputs": [rounded(x.grad) for x in inputs],
            "gradients": {path: rounded(p.grad) for path, p in model.named_parameters() if p.grad is not None},
            "state": {path: rounded(x) for path, x in model.state_dict().items()},
        }
    figures["calls"] = {
        name: [None if x is None else rounded(x.detach()) for x in call(torch.nn, torch.tensor)]
        for name, call in CALLS.items()
    }
    return figures


def rounded(x: Any) -> Any:
    """The elements as numbers that JSON has, with ten digits."""
    return json.loads(json.dumps(np.asarray(x).tolist()), parse_float=lambda text: float(f"{float(text):.10g}"))


if __name__ == "__main__":
    FIGURES.write_text(json.dumps(figures_of_torch(), indent=None).replace('}, "', '},\n"') + "\n")
