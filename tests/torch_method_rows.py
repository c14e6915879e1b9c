"""Calls of torch's methods and functions, and the figures that torch gives for them.

Figures were made by torch 2.13: `python tests/torch_method_rows.py` makes the file anew where torch is installed.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

FIGURES = Path(__file__).with_name("torch_method_figures.json")

ARRAYS: dict[str, Any] = {
    "x": np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]]),
    "x3": np.arange(24.0).reshape(2, 3, 4) % 7 - 2.5,
    "p": np.array([[0.3, 0.7, 0.2], [0.9, 0.5, 0.6]]),
    "v": np.array([1.5, -0.5, 2.5]),
    "s": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]]),
    "ties": np.array([[1.0, 2.0, 1.0, 0.5], [2.0, 0.0, 2.0, 2.0]]),
    "gaps": np.array([[1.0, np.nan, 3.0], [2.0, 0.5, np.nan]]),
    "n": np.array([[-7, 7, 0], [5, -5, 9]]),
    "i": np.array([[1, 0, 1], [0, 1, 0]]),
    "j": np.array([2, 0, 2]),
    "c": np.array([1 + 2j, -0.5j]),
}

# Methods that work in all modes.  Of those on floating-point numbers, derivatives are compared, too.
METHODS = """
x.view(3, 2); x.view(-1); x.view((2, 3)); x.view(size=(3, 2)); x.reshape(3, -1); x.reshape((6,)); x.size(); x.size(0)
x.size(-1); x.dim(); x.numel(); x.nelement(); x.ndimension(); x.unsqueeze(1); x.unsqueeze(-1); x[None].squeeze(0)
x[:, :1].squeeze(1); x[None].squeeze(); x.squeeze(dim=0); x[None].squeeze(dim=(0, 1)); x3.transpose(1, 2)
x3.transpose(-2, -1); x3.transpose(dim0=0, dim1=2); x.transpose(1, 0); x3.permute(2, 0, 1); x3.permute(dims=(1, 0, 2))
x3.permute((2, 1, 0)); x.t(); v.t(); x.T; x3.mT; x3.movedim(0, 2); x3.moveaxis((0, 1), (1, 0)); x3.swapaxes(0, 1)
x3.swapdims(0, 2); x3.flatten(1); x3.flatten(); x3.flatten(start_dim=0, end_dim=1); x3.flatten(-2, -1); x.ravel()
x3.unflatten(2, (2, 2)); x3.unflatten(-1, (2, -1)); x.view_as(n); x.reshape_as(n); x.expand(4, -1, 3)
x[:, :1].expand(-1, 3); x.expand((2, 2, 3)); v.expand_as(x); v.broadcast_to((2, 3)); x.sum_to_size(1, 3)
x3.repeat(1, 2, 1); x.tile(2); x.tile(2, 1); x.tile((1, 2)); x.repeat_interleave(2); x.repeat_interleave(2, dim=1)
x.roll(1, 0); x.roll(1); x.roll((1, 2), (0, 1)); x.roll(shifts=-1, dims=1); x.flip(0); x.flip((0, 1))
x.flip(dims=(1,)); x.fliplr(); x.flipud(); x.rot90(); x.rot90(2, (1, 0)); x3.unfold(2, 2, 1); x3.unfold(1, 2, 1)
v.unfold(0, 2, 1); x.contiguous(); x3.split(2, 1); x3.split([1, 2], dim=1); x3.split(2, dim=-1); x3.chunk(2, 1)
x3.chunk(3, -1); x3.tensor_split(3, 2); x.hsplit(3); x3.vsplit(2); x3.dsplit(2); x.unbind(); x.unbind(1)
x3.unbind(-1); x3.select(1, 2); x3.select(-1, 0); x3.narrow(1, 1, 2); x3.narrow(-1, -2, 2); x.index_select(1, j)
x.index_select(0, i[0]); x.gather(0, i); x.gather(1, i); x.gather(1, i[:, :2]); x.gather(dim=1, index=i[:1])
x.take_along_dim(i, 0); x.take(j); x.diag(); v.diag(); v.diag(1); s.diagonal(); s.diagonal(1); x3.diagonal(0, 1, 2)
x3.diagonal(dim1=0, dim2=2); v.diagflat(); x.diag_embed(); x.diag_embed(1); x.diag_embed(-1); s.tril(); s.tril(-1)
s.triu(1); s.triu(diagonal=-1); x.masked_fill(x > 0, 1.0); x.masked_fill(x.gt(0), float('-inf'))
x.masked_fill(n == 0, -1e9); x.masked_scatter(x > 0, p); x.where(x > 0, p); x.where(x > 0, p * 0); x.clamp(min=0)
x.clamp(-1.2, 1.3); x.clamp(max=1.5); x.clamp_min(0.2); x.clamp_max(0.1); x.clip(-1.2, 2.5); gaps.nan_to_num()
gaps.nan_to_num(7.0); x.scatter(1, i[:, :2], p[:, :2]); x.scatter(0, i, p); x.scatter(1, i[:, :2], 5.0)
x.scatter(1, i[:, :1], value=2.0); x.scatter_add(1, i, p); x.scatter_add(0, i, p)
x.scatter_add(1, i[:, :2], p[:, :2]); x.scatter_reduce(1, i, p, 'sum'); x.scatter_reduce(0, i, p, 'amax')
x.scatter_reduce(1, i, p, 'prod', include_self=False); x.scatter_reduce(1, i, p, 'mean'); x.index_add(1, j, p)
x.scatter_reduce(1, i, p, 'amin', include_self=False); x.index_add(0, i[0, :2], p, alpha=2)
x.index_copy(1, j[:2], p[:, :2]); x.index_fill(1, j, 2.0); x.index_put((i[0, :2], j[:2]), v[:2])
x.index_put((i[0], j), v, accumulate=True); x.put(j[:2], v[:2], accumulate=False); x.put(j, v, accumulate=True)
x.select_scatter(v, 0, 1); x.slice_scatter(p[:, :2], 1, 1, 3); x.max(); x.min(); x.max(dim=1); x.max(0, keepdim=True)
x.max(1, True); x.max(dim=-1).indices; x.min(dim=0).values; x.max(p); x.min(other=p); x.amax(1); x.amax((0, 1))
x.amin(dim=0, keepdim=True); x.aminmax(dim=1); x.argmax(); x.argmax(1); x.argmax(dim=1, keepdim=True)
x.argmin(1, True); x.argmin(dim=0); x.argsort(); x.argsort(1, True); x.argsort(dim=0, descending=True); x.sort(dim=1)
x.sort(descending=True); x.sort(0, True); x.sort(0, descending=True)[1]; x.msort(); x.topk(2); x.topk(1, 0)
x.topk(2, largest=False); x.topk(k=2, dim=1).indices; x.kthvalue(2); x.kthvalue(1, 0, True); x.median(); x.median(1)
x.median(dim=0, keepdim=True); gaps.median(1).values; gaps.nanmedian(1); gaps.nanmedian(); x.mode(1).values
ties.mode(); n.mode(0).values; x.quantile(0.3); x.quantile(0.5, dim=1); x.quantile(0.25, 1, True)
gaps.nanquantile(0.5, dim=1); x.cummax(1); x.cummin(dim=0); ties.cummax(1); x.count_nonzero(); n.count_nonzero(dim=1)
x.histc(4, -3, 5); x.histc(bins=3); x.sum(); x.sum(1); x.sum(dim=1)
x.sum((0, 1)); x.sum(1, True); x.sum(dim=(0, 1), keepdim=True); x.sum(dim=()); (x > 0).sum(dim=1); n.sum(); x.mean()
x.mean(1); x.mean(dim=0, keepdim=True); x.mean((0, 1)); x.mean(-1, True); x.prod(); x.prod(1); x.prod(dim=0)
(x > 0).any(); (x > 0).any(dim=1); (x > -3).all(1, True); x.std(dim=1); x.std(unbiased=False); x.std(unbiased=True)
x.std(1, keepdim=True); x.std(dim=(0, 1), keepdim=True); x.var(dim=0, unbiased=False); x.var(0, correction=0)
x.var(dim=1, correction=1, keepdim=True); x.cumsum(0); x.cumsum(dim=1); x.cumprod(dim=1); gaps.nansum()
gaps.nansum(1); gaps.nanmean(dim=1); x.diff(); x.diff(dim=0); x3.diff(2, -1); x.norm(); x.norm(1); x.norm(p=2, dim=1)
x.norm(2, 1, True); x.norm(float('inf')); x.norm(3, dim=0); x.norm(dim=1, keepdim=True); s.norm('fro'); s.norm('nuc')
x.dist(p); x.dist(p, 1); x.renorm(2, 0, 3.0); x.softmax(-1); x.softmax(dim=0); x3.softmax(1); x.log_softmax(-1)
x3.log_softmax(dim=1); x.logsumexp(1); x.logsumexp((0, 1)); x.logsumexp(dim=0, keepdim=True); x.logcumsumexp(1)
x.matmul(x.T); x @ x.mT; s.mm(x.T); s.mv(v); x3.bmm(x3.mT); v.dot(v); v.vdot(v); s.addmm(x.T, x); v.addmv(s, v)
x3[:, :, :3].baddbmm(x3, x3.mT, beta=0.5, alpha=2); s.addmm(s, s, beta=2, alpha=0.1)
s.addbmm(x3[:, :, :3], x3[:, :, :3]); s.addr(v, v); v.outer(v); v.ger(v[:2]); v.inner(v); x.inner(p)
x.cross(p, dim=1); x.kron(p); s.trace(); s.det(); s.logdet(); s.slogdet(); s.inverse(); x.pinverse(); s.cholesky()
s.matrix_power(3); x.cov(); x.corrcoef(); x.svd()[1]; s.adjoint(); x.relu(); x.sigmoid(); x.add(p); x.add(p, alpha=2)
x.sub(1, alpha=2); x.mul(2); x.div(2); x.div(p); x.div(2, rounding_mode='floor'); x.div(2, rounding_mode='trunc')
n.div(2, rounding_mode='trunc'); n.div(4, rounding_mode='floor'); x.neg(); x.abs(); x.pow(2); x.pow(3); p.pow(0.5)
p.pow(p); x.exp(); p.log(); p.log2(); p.log10(); p.log1p(); x.expm1(); p.sqrt(); p.rsqrt(); x.square(); p.reciprocal()
(n + 10).reciprocal(); x.sin(); x.cos(); x.tan(); p.asin(); p.acos(); x.atan(); x.sinh(); x.cosh(); x.tanh()
x.asinh(); (p + 1).acosh(); p.atanh(); p.arcsin(); x.atan2(p); x.hypot(p); x.sign(); x.sgn(); x.floor(); x.ceil()
x.round(); p.round(decimals=1); x.trunc(); x.fix(); x.frac(); x.fmod(2); x.remainder(2); n.remainder(4); n.fmod(4)
x.true_divide(2); x.maximum(p); x.minimum(p); x.fmax(p); x.fmin(p); x.lerp(p, 0.3); x.lerp(p, p)
x.addcmul(p, p, value=2); x.addcdiv(p, p + 1); p.logit(); p.logit(eps=0.25); x.erf(); x.erfc(); p.erfinv(); p.lgamma()
p.digamma(); p.xlogy(p); x.sinc(); p.i0(); (p + 2).mvlgamma(2); x.eq(p); x.ne(x); x.lt(p); x.le(x); x.gt(p); x.ge(p)
x.equal(x); x.equal(p); x.isclose(x + 1e-9); x.allclose(x); gaps.isnan(); x.isinf(); x.isfinite()
(x > 0).logical_and(p > 0.5); (x > 0).logical_not(); (x > 0).logical_or(p > 0.5); (x > 0).logical_xor(p > 0.5)
n.bitwise_and(3); n.bitwise_or(1); n.bitwise_xor(2); n.bitwise_not(); ~(x > 0); x.logaddexp(p); x.copysign(-p)
x.hardshrink(1.0); c.angle(); c.conj(); c.real; c.imag; c.abs(); x.deg2rad(); x.rad2deg(); x.exp2(); x.float_power(2)
x.signbit(); x.float(); x.double(); x.half().double(); x.long(); x.int(); (x > 0).float(); x.bool(); n.short()
x.to(torch.float32); x.to(n); x.to('cpu'); x.to('cpu', torch.float64); x.to(dtype=torch.int64); x.type_as(n)
x.is_floating_point(); n.is_floating_point(); c.is_complex(); x.element_size(); x.clone(); x.detach(); x.cpu()
x.new_zeros(2, 2); x.new_zeros((3,)); x.new_ones(2); x.new_full((2, 2), 1.5); n.new_zeros(2); x.new_tensor([1.0, 2.0])
x.new_zeros(2, dtype=torch.int64); x.clone().add_(p); x.clone().add_(p, alpha=2); x.clone().mul_(2); x.clone().div_(p)
x.clone().sub_(1); x.clone().neg_(); x.clone().exp_(); p.clone().sqrt_(); x.clone().clamp_(min=0)
x.clone().clamp_(-1.2, 1.3); x.clone().masked_fill_(x > 0, 1.0); x.clone().fill_(2.0); x.clone().zero_()
x.clone().copy_(p); x.clone().scatter_(0, i, p); x.clone().scatter_add_(1, i, p); x.clone().index_add_(1, j, p)
x.clone().index_fill_(1, j, 2.0); x.clone().relu_(); x.clone().sigmoid_(); x.clone().tanh_(); x.clone().lerp_(p, 0.3)
x.clone().addcmul_(p, p, value=2); x.clone().addcdiv_(p, p + 1); s.clone().tril_(); s.clone().triu_()
x.clone().pow_(2); x.clone().abs_(); x.clone().floor_(); x.clone().cumsum_(1); s.clone().fill_diagonal_(1.0)
x.clone().index_copy_(1, j[:2], p[:, :2]); x.clone().clamp_min_(0.1); x.clone().round_(); p.clone().reciprocal_()
x.t().contiguous(); [(y.t().contiguous().zero_(), y) for y in [x.clone()]][0]
[(y.contiguous().zero_(), y) for y in [x.clone()]][0]; x.float().cov().element_size()
x.float().corrcoef().element_size(); p.half().erf().element_size(); p.half().lgamma().element_size()
(p + 2).float().mvlgamma(2).element_size(); x3[:, :0].chunk(2, 1); x.sum().cumsum(dim=0); x.sum().cumprod(dim=0)
x.sum().argsort(dim=0); x.sum().index_select(0, j[1]); x3[:0].logsumexp((0, 1)); (x > 0).adjoint(); gaps.hardshrink()
n.max(n[0, 1]); n.min(other=n[0, 1]); x.mul(other=p); x.pow(exponent=2); x.add(other=p); x.fmod(other=2)
x.eq(other=p); s.mm(mat2=s); torch.dot(v, tensor=v)
"""

# Functions that are not methods, or take other arguments than methods.
FUNCTIONS = """
torch.cat([x, p]); torch.cat((x, p), dim=1); torch.cat([x, p], -1); torch.concat([x, p], 1); torch.stack([x, p])
torch.stack((x, p), dim=-1); torch.hstack([x, p]); torch.vstack([x, p]); torch.dstack([x, p])
torch.column_stack([v, v]); torch.where(x > 0, x, p); torch.where(x > 0, x, torch.zeros_like(x))
torch.where(x > 0, 1.0, 0.0); torch.einsum('ij,kj->ik', x, p); torch.einsum('bij,bkj->bik', [x3, x3])
torch.bmm(x3, x3.mT); torch.matmul(x, s); torch.mm(x, s); torch.mv(s, v); torch.dot(v, v); torch.outer(v, v)
torch.tensordot(x, s, dims=1); torch.tensordot(x, p, dims=([1], [1])); torch.max(x, 1); torch.max(x); torch.max(x, p)
torch.min(x, dim=0)[1]; torch.std(x); torch.std(x, 1); torch.var(x, dim=0); torch.var(x, unbiased=False)
torch.sum(x, 1); torch.sum(x, dim=(0, 1)); torch.mean(x, dim=1, keepdim=True); torch.transpose(x, 0, 1); torch.sort(x)
torch.sort(x, 0, True)[1]; torch.argsort(x, 1); torch.squeeze(x[None], 0); torch.unsqueeze(x, 0); torch.flatten(x3, 1)
torch.reshape(x, (3, 2)); torch.permute(x3, (2, 0, 1)); torch.softmax(x, dim=-1); torch.log_softmax(x, 1)
torch.sigmoid(x); torch.relu(x); torch.tanh(x); torch.exp(x); torch.clamp(x, min=0); torch.clamp(x, 0, 1.5)
torch.abs(x); torch.pow(x, 2); torch.sqrt(p); torch.norm(x); torch.cumsum(x, 0); torch.topk(x, 2)
torch.gather(x, 1, i); torch.scatter_add(x, 1, i, p); torch.index_select(x, 1, j); torch.roll(x, 1, 0)
torch.flip(x, (0,)); torch.split(x3, 2, dim=1); torch.chunk(x3, 2, 1); torch.unbind(x); torch.tril(s)
torch.triu(s, 1); torch.diag(v); torch.logsumexp(x, 1); torch.meshgrid(v, v[:2], indexing='ij')
torch.broadcast_tensors(x, v); torch.cartesian_prod(v, v[:2]); torch.atleast_2d(v)
torch.searchsorted(torch.sort(v)[0], p); torch.bucketize(x, torch.sort(v)[0]); torch.cdist(x, p); torch.addmm(s, s, s)
torch.baddbmm(x3[:, :, :3], x3, x3.mT); torch.allclose(x, x); torch.equal(x, p); torch.isnan(gaps); torch.eq(x, p)
torch.logical_and(x > 0, p > 0.5); torch.maximum(x, p); torch.repeat_interleave(x, 2, 1)
torch.masked_fill(x, x > 0, 0.0); torch.all(x > 0); torch.any(x > 0, 1); torch.movedim(x3, 0, 1); torch.real(c)
torch.angle(c); torch.view_as_real(c); torch.view_as_complex(torch.stack([x, p], -1)); torch.erf(x)
torch.polygamma(1, p); torch.prod(x, 1); torch.argmax(x, dim=-1); torch.numel(x); torch.zeros(2, 3); torch.ones((2,))
torch.full((2, 2), 1.5); torch.eye(3); torch.arange(5); torch.arange(1, 9, 2); torch.arange(0, 1, 0.25)
torch.linspace(0, 1, 5); torch.zeros_like(x); torch.ones_like(x, dtype=torch.int64); torch.full_like(x, 2.0)
torch.tensor([[1, 2], [3, 4]]); torch.tensor(2.5); torch.tril_indices(3, 3); torch.triu_indices(3, 3, 1)
torch.logspace(0, 2, 3); torch.is_tensor(x); torch.clone(x); torch.sum(input=x, dim=1); torch.sum(x, axis=1)
torch.max(x, axis=1); torch.max(n, n[0, 1]); torch.where(condition=x > 0, input=x, other=p); torch.mm(x, mat2=s)
torch.pow(input=p, exponent=2); torch.addmm(gaps[:, :2], x, x.T, beta=0); torch.polygamma(1, p.float()).element_size()
torch.arange(start=1, end=4); torch.zeros(size=(2,)); torch.full(size=(2,), fill_value=1.5)
torch.as_tensor([1.5, 2.0]); torch.as_tensor(x) + 1; torch.std(x, axis=1, keepdims=True)
"""

# How many elements there are depends on values, or what is asked for is no array: not in compiled code.
OF_VALUES = """
j.bincount(); j.bincount(minlength=5)
x.scatter(1, i[:, 1:], p, reduce='add'); x.scatter(1, i[:, :2], 2.0, reduce='multiply'); x.floor_divide(2)
x.heaviside(p); x.masked_select(x > 0); x.nonzero(as_tuple=False); x.nonzero(as_tuple=True); x.argwhere(); n.unique()
ties.unique(); n.unique(return_inverse=True); ties.unique(return_counts=True); ties.unique(dim=0)
j.unique_consecutive(); ties[1].unique_consecutive(return_counts=True); torch.masked_select(x, x > 0); torch.unique(n)
torch.where(x > 0); x.tolist(); x[0, 0].item(); x.sum().item(); torch.nonzero(n); x.numpy(); float(x.sum())
x.is_contiguous(); x.t().is_contiguous(); torch.bincount(j, v.float()).element_size()
"""


def calls(text: str) -> list[str]:
    """The calls of one of these tables."""
    return [call for line in text.splitlines() for call in line.split("; ") if call]


def leaves(x: Any) -> list[Any]:
    """The arrays of a result."""
    return [y for part in x for y in leaves(part)] if isinstance(x, tuple | list) else [x]


def weights(shape: tuple[int, ...]) -> Any:
    """What the elements of a result are multiplied by before they are added up and differentiated."""
    return np.cos(np.arange(math.prod(shape))).reshape(shape)


def figures() -> dict[str, Any]:
    """What torch gives: shape, kind and elements of each result, and the derivative with respect to each array."""
    import torch

    def described(y: Any) -> Any:
        array = np.asarray(y.detach().resolve_conj().numpy(force=True) if isinstance(y, torch.Tensor) else y)
        flat = array.reshape(-1)
        if array.dtype.kind == "c":
            flat = np.stack([flat.real, flat.imag], -1).reshape(-1)
        return [list(array.shape), array.dtype.kind, [float(f"{e:.12g}") for e in flat]]

    found = {}
    for call in [*calls(METHODS), *calls(FUNCTIONS), *calls(OF_VALUES)]:
        given = {name: torch.tensor(a, requires_grad=a.dtype.kind == "f") for name, a in ARRAYS.items()}
        values = {name: a.detach() if call in calls(OF_VALUES) else a for name, a in given.items()}
        outs = leaves(eval(call, {"torch": torch, **values}))
        real = [y for y in outs if isinstance(y, torch.Tensor) and y.requires_grad and y.is_floating_point()]
        gradients = {}
        if real:
            sum([(y * torch.tensor(weights(tuple(y.shape)))).sum() for y in real]).backward()
            gradients = {name: described(a.grad)[2] for name, a in given.items() if a.grad is not None}
        found[call] = [[described(y) for y in outs], gradients]
    return found


if __name__ == "__main__":
    FIGURES.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in figures().items()) + "\n}\n")
