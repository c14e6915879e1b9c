"""Methods and hooks of modules that torch has: what they do, in every mode, and what they say of mistakes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from ftrans import autograd, nn


def model() -> Any:
    nn.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ModuleDict({"last": nn.Linear(4, 2)}))


# Paths


def test_what_is_at_a_path() -> None:
    m = model()
    assert m.get_submodule("") is m
    assert m.get_submodule("2.last") is m[2]["last"]
    assert m.get_buffer("1.running_mean") is m[1].running_mean
    assert m.get_parameter("2.last.weight") is m[2]["last"].weight
    for call, words in (
        (lambda: m.get_buffer("1.weight"), "no buffer '1.weight'; it has 1.running_mean, 1.running_var"),
        (lambda: m.get_parameter("1.running_mean"), "no parameter"),
        (lambda: nn.Linear(1, 1).get_buffer("x"), "no buffer 'x'; it has none"),
        (lambda: m.get_submodule("3"), "no module '3'; it has 0, 1, 2, 2.last"),
        (lambda: m.set_submodule("9.x", nn.Identity()), "no module '9'"),
        (lambda: m.set_submodule("0.x", nn.Identity(), strict=True), "no module '0.x'"),
    ):
        with pytest.raises(AttributeError, match=words):
            call()


def test_modules_are_replaced_and_added() -> None:
    m = model()
    m.set_submodule("0", nn.Identity())
    m.set_submodule("2.last", nn.Linear(3, 1))
    m.set_submodule("2.first", nn.ReLU())
    m.set_submodule("1.extra", nn.Tanh())
    assert [p for p, _ in m.named_modules()] == ["", "0", "1", "1.extra", "2", "2.last", "2.first"]
    assert m.get_parameter("2.last.weight").shape == (1, 3)
    with pytest.raises(ValueError, match="path of a module inside"):
        m.set_submodule("", nn.Identity())
    with pytest.raises(TypeError, match="takes a Module, not int"):
        m.set_submodule("0", 3)


def test_duplicates() -> None:
    m = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    m.append(m[0])
    m.append(m[1])
    assert [p for p, _ in m.named_modules()] == ["", "0", "1"]
    assert [p for p, _ in m.named_modules(remove_duplicate=False)] == ["", "0", "1", "2", "3"]
    assert len(list(m.modules(remove_duplicate=False))) == 5
    assert [p for p, _ in m.named_parameters(remove_duplicate=False) if "weight" in p] == [
        f"{i}.weight" for i in range(4)
    ]
    assert len(list(m.named_buffers())) == 3
    assert len(list(m.named_buffers(remove_duplicate=False))) == 6
    assert nn.SyncBatchNorm.convert_sync_batchnorm(m) is m


def test_gradients_become_none_or_zeros() -> None:
    m = nn.Linear(3, 1)
    np.sum(m(autograd.tensor(np.ones((2, 3), np.float32)))).backward()
    m.zero_grad(set_to_none=False)
    np.testing.assert_array_equal(m.weight.grad.numpy(), np.zeros((1, 3)))
    m.zero_grad()
    assert m.weight.grad is None
    m.zero_grad(set_to_none=False)
    assert m.weight.grad is None


# Hooks before the backward pass

X = np.array([[1.0, -2.0, 0.5]], np.float32)


def gradients(m: Any, mode: str) -> tuple[Any, Any]:
    """The gradients of the weight and of the input."""

    def loss(m: Any, x: Any) -> Any:
        return np.sum(np.sin(m(x)))

    if mode == "tensors":
        x = autograd.tensor(X, requires_grad=True)
        m.zero_grad()
        loss(m, x).backward()
        return m.weight.grad.numpy(), x.grad.numpy()
    f = nn.grad(loss, argnums=(0, 1))
    of_model, of_x = (nn.jit(f) if mode == "jit" else f)(m, X)
    return of_model["weight"], of_x


@pytest.mark.parametrize("mode", ["tensors", "eager", "jit"])
def test_hooks_before_the_backward_pass(mode: str) -> None:
    nn.manual_seed(0)
    m, order = nn.Linear(3, 2), []
    plain = gradients(m, mode)

    def triple(module: Any, grad_output: Any) -> Any:
        order.append("pre")
        return (3 * grad_output[0],)

    handle = m.register_full_backward_pre_hook(triple)
    later = m.register_full_backward_hook(lambda module, gx, gy: order.append("full"))
    for found, expected in zip(gradients(m, mode), plain, strict=True):
        np.testing.assert_allclose(found, 3 * expected, rtol=1e-5)
    assert order[:2] == ["pre", "full"]
    handle.remove()
    later.remove()
    assert "_hooks" not in m.__dict__
    for found, expected in zip(gradients(m, mode), plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("mode", ["tensors", "eager"])
def test_what_hooks_before_the_backward_pass_return(mode: str) -> None:
    m = nn.Linear(3, 2)
    m.register_full_backward_pre_hook(lambda module, grads: grads * 2)
    with pytest.raises(RuntimeError, match=r"pre-hook.* returned 2 gradients in place of 1"):
        gradients(m, mode)
    m = nn.Linear(3, 2)
    m.register_full_backward_pre_hook(lambda module, grads: grads[0].sum())
    with pytest.raises(RuntimeError, match="must keep its shape"):
        gradients(m, mode)


# State


class Counting(nn.Linear):
    """A layer with a state beside its arrays."""

    count = 0

    def get_extra_state(self) -> Any:
        return {"count": self.count}

    def set_extra_state(self, state: Any) -> None:
        self.count = state["count"]


def test_extra_state() -> None:
    m, other = nn.Sequential(Counting(2, 2), nn.ReLU()), nn.Sequential(Counting(2, 2), nn.ReLU())
    m[0].count = 7
    state = m.state_dict()
    assert list(state) == ["0.weight", "0.bias", "0._extra_state"]
    assert tuple(other.load_state_dict(state)) == ([], [])
    assert other[0].count == 7
    del state["0._extra_state"]
    with pytest.raises(ValueError, match=r"missing: 0\._extra_state"):
        other.load_state_dict(state)
    assert other.load_state_dict(state, strict=False).missing_keys == ["0._extra_state"]
    for call in (nn.Linear(1, 1).get_extra_state, lambda: nn.Linear(1, 1).set_extra_state(1)):
        with pytest.raises(RuntimeError, match="defines both get_extra_state"):
            call()


def test_hooks_of_the_state() -> None:
    m, calls = model(), []
    last = m[2]["last"]
    last.register_state_dict_pre_hook(lambda module, prefix, keep_vars: calls.append((prefix, keep_vars)))
    m.register_state_dict_post_hook(lambda module, state, prefix, _: state.update(version=np.ones(())))
    last.register_state_dict_post_hook(lambda module, state, prefix, _: calls.append(prefix + "weight" in state))
    state = m.state_dict(prefix="a.")
    assert calls == [("a.2.last.", False), True]
    assert list(state)[-2:] == ["a.2.last.bias", "version"]
    found: dict[str, Any] = {"before": 1}
    assert m.state_dict(destination=found, keep_vars=True) is found
    assert found["0.weight"] is m[0].weight
    assert found["before"] == 1


def test_hooks_of_loading() -> None:
    m, calls = model(), []
    state = {path.replace("0.", "first."): x + 1 for path, x in m.state_dict().items() if "num_" not in path}
    given = dict(state)

    def rename(module: Any, state: Any, prefix: Any, metadata: Any, strict: Any, *lists: Any) -> None:
        for name in ("weight", "bias"):
            state[prefix + name] = state.pop(f"first.{name}")

    handle = m[0].register_load_state_dict_pre_hook(rename)
    m.register_load_state_dict_post_hook(lambda module, keys: calls.append(tuple(keys)))
    m.load_state_dict(state, strict=False)
    np.testing.assert_array_equal(m[0].weight.value, state["first.weight"])
    assert calls == [(["1.num_batches_tracked"], [])]
    assert given.keys() == state.keys()
    before = m.state_dict()
    m.register_load_state_dict_pre_hook(lambda *args: args[-1].append("of an old version"))
    with pytest.raises(ValueError, match="of an old version"):
        m.load_state_dict(state, strict=False)
    handle.remove()
    with pytest.raises(ValueError, match=r"(?s)of an old version.*unexpected: first.weight"):
        m.load_state_dict(state)
    assert all(np.array_equal(before[path], x) for path, x in m.state_dict().items())


def double(module: Any, state: Any, prefix: str, metadata: Any) -> None:
    state[prefix + "twice"] = 2 * state[prefix + "bias"]


def test_hooks_are_copied_with_the_module() -> None:
    m = nn.Linear(2, 1)
    m.register_state_dict_post_hook(double)
    for x in (copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert list(x.state_dict()) == ["weight", "bias", "twice"]
