"""Datasets, samplers and loaders: what they give, in which order, from which process, and after which state."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest
from training import Net, X, Y, fit, no_curves, state  # noqa: F401

from ftrans import nn
from ftrans.nn import data
from ftrans.nn.data.messages import packed

# How workers start: from a process that has imported what they import.
START = "forkserver"
Pair = namedtuple("Pair", "x y")


def lists(x: Any) -> Any:
    """Arrays as lists."""
    if isinstance(x, dict):
        return {name: lists(y) for name, y in x.items()}
    return [lists(y) for y in x] if isinstance(x, tuple | list | data.DataLoader) else np.asarray(x).tolist()


@pytest.fixture(autouse=True, scope="module")
def _workers_start_fast() -> None:
    multiprocessing.get_context(START).set_forkserver_preload(["ftrans.nn"])


# Datasets


def test_datasets() -> None:
    tensors = data.TensorDataset(X, Y)
    assert len(tensors) == 64
    np.testing.assert_array_equal(tensors[3][1], Y[3])
    both = data.ConcatDataset([[1, 2], [], [3]]).__add__([4])
    assert [both[i] for i in range(-4, 4)] == [1, 2, 3, 4, 1, 2, 3, 4]
    assert both.cumulative_sizes == [3, 4]
    assert data.StackDataset("ab", [1, 2])[1] == ("b", 2)
    assert data.StackDataset(x="ab", y=[1, 2])[0] == {"x": "a", "y": 1}
    chained = data_sets.Counting(2) + data_sets.Counting(3)
    assert list(chained) == [0, 1, 0, 1, 2]
    nested = data.Subset(data.Subset(tensors, range(10, 20)), [3, 0])
    np.testing.assert_array_equal(nested[0][0], X[13])
    np.testing.assert_array_equal(nested.__getitems__([1])[0][0], X[10])
    ((x, _),) = data.DataLoader(nested, batch_size=5)
    np.testing.assert_array_equal(x, X[[13, 10]])


def test_random_split() -> None:
    parts = data.random_split(range(10), [0.55, 0.25, 0.2], generator=3)
    assert [len(p) for p in parts] == [6, 2, 2]
    assert sorted(x for p in parts for x in p) == list(range(10))  # type: ignore[attr-defined]
    again = data.random_split(range(10), [6, 2, 2], generator=np.random.default_rng(3))
    assert [p.indices for p in again] == [p.indices for p in parts]


def test_samplers() -> None:
    assert sorted(data.RandomSampler("abcde", generator=0)) == list(range(5))
    assert len(data.RandomSampler("ab", num_samples=5)) == 5
    assert np.bincount(list(data.RandomSampler("ab", num_samples=5, generator=0))).max() == 3
    assert set(data.RandomSampler("ab", replacement=True, num_samples=50, generator=0)) == {0, 1}
    assert sorted(data.SubsetRandomSampler([7, 5])) == [5, 7]
    drawn = np.bincount(list(data.WeightedRandomSampler([1, 0, 3], 4000, generator=0))) / 4000
    np.testing.assert_allclose(drawn, [0.25, 0, 0.75], atol=0.03)
    assert sorted(data.WeightedRandomSampler([1, 0, 3], 2, replacement=False)) == [0, 2]
    assert list(data.BatchSampler(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    shares = [data.DistributedSampler(range(10), 4, i) for i in range(4)]
    assert [len(s) for s in shares] == [3] * 4
    first, second = ([i for s in shares for i in s] for _ in range(2))
    assert set(first) == set(second) == set(range(10))
    assert first != second
    shares[0].set_epoch(0)
    assert list(shares[0]) == first[:3]


def test_samplers_draw_from_manual_seed() -> None:
    orders = []
    for _ in range(2):
        nn.manual_seed(2)
        orders.append([*data.RandomSampler(X), *data.SubsetRandomSampler(range(9))])
    assert orders[0] == orders[1]


def test_default_collate() -> None:
    samples = [{"a": (np.float32(i), "t"), "b": [i, X[i]], "c": Pair(i, 0.5)} for i in range(3)]
    batch = data.default_collate(samples)
    assert batch["a"][0].dtype == np.float32
    assert batch["a"][1] == ["t"] * 3
    assert lists(batch["b"][0]) == [0, 1, 2]
    np.testing.assert_array_equal(batch["b"][1], X[:3])
    assert type(batch["c"]) is Pair
    assert batch["c"].y.dtype == np.float64
    assert [x.dtype for x in data.default_collate([(True, 1)])] == [np.bool_, np.int64]


# Loaders


def test_loader_in_this_process() -> None:
    loader = data.DataLoader(data.TensorDataset(X, Y), batch_size=20, shuffle=True, generator=0)
    epochs = [list(loader), list(loader)]
    assert [len(e) for e in epochs] == [len(loader)] * 2 == [4, 4]
    assert [len(x) for x, _ in epochs[0]] == [20, 20, 20, 4]
    for epoch in epochs:
        x, y = (np.concatenate(parts) for parts in zip(*epoch, strict=True))
        order = np.lexsort(x.T)
        np.testing.assert_array_equal(x[order], X[np.lexsort(X.T)])
        np.testing.assert_array_equal(y[order], Y[np.lexsort(X.T)])
    assert not np.array_equal(epochs[0][0][0], epochs[1][0][0])
    assert lists(data.DataLoader(range(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert lists(data.DataLoader(["a", "b"], batch_size=None)) == ["a", "b"]
    assert lists(data.DataLoader(range(5), batch_sampler=[[4, 0], [1]])) == [[4, 0], [1]]
    assert lists(data.DataLoader(range(5), sampler=[3, 1], batch_size=2)) == [[3, 1]]
    assert lists(data.DataLoader(data_sets.Counting(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert lists(data.DataLoader(data_sets.Counting(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(data.DataLoader(data_sets.Counting(2), batch_size=None)) == [0, 1]
    assert list(data.DataLoader(range(4), batch_size=2, collate_fn=tuple)) == [(0, 1), (2, 3)]
    assert len(data.DataLoader(data.ChainDataset([range(5)]), batch_size=2)) == 3


def noisy(workers: int, **options: Any) -> Any:
    """A loader of rows and random numbers."""
    return data.DataLoader(
        data_sets.Noisy(20), 4, True, num_workers=workers, generator=6, multiprocessing_context=START, **options
    )


def test_workers_give_the_same_whatever_their_number(tmp_path: Path) -> None:
    one, two, none = noisy(1), noisy(2, persistent_workers=True), noisy(0)
    for _ in range(2):
        first, second, here = ([lists(b) for b in loader] for loader in (one, two, none))
        assert first == second
        assert [b["x"] for b in first] == [b["x"] for b in here]
    # Left in the middle, with the same workers after.
    next(batches := iter(two))
    batches.close()
    assert len(list(two)) == 5
    # Where the epoch stands, in a text.
    batches = iter(two)
    seen = [lists(next(batches)) for _ in range(2)]
    saved = json.dumps(two.state_dict())
    rest = [lists(b) for b in batches]
    assert len(seen) + len(rest) == 5
    again = noisy(1)
    again.load_state_dict(json.loads(saved))
    assert [lists(b) for b in again] == rest
    assert [lists(b) for b in again] == [lists(b) for b in two]
    next(interrupted := iter(two))
    next(iter(two))
    with pytest.raises(RuntimeError, match="another one has begun"):
        next(interrupted)
    del interrupted, batches, two
    assert not multiprocessing.active_children()


def test_workers_of_iterable_datasets() -> None:
    loader = data.DataLoader(data_sets.Counting(7), 2, num_workers=2, multiprocessing_context=START)
    batches = [b.tolist() for b in loader]
    assert batches == [[0, 2], [1, 3], [4, 6], [5]]
    batches_again = iter(loader)
    next(batches_again)
    saved = loader.state_dict()
    del batches_again
    loader.load_state_dict(saved)
    assert [b.tolist() for b in loader] == batches[1:]


def test_workers_know_themselves_and_maps_travel_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    x = np.memmap(path, np.float32, "w+", shape=(500, 100))
    x[:] = np.arange(500)[:, None]
    x.flush()
    spawned = data.DataLoader(data_sets.Noisy(2), num_workers=1)
    assert len(list(spawned)) == 2
    assert sum(len(bytes(part)) for part in packed(x)) < 1000 < sum(len(bytes(part)) for part in packed(x[3:]))
    mapped = np.memmap(path, np.float32, "r", shape=(500, 100))
    rows = data.StackDataset(data.TensorDataset(mapped, mapped[3:].repeat(2, 0)[:500]), range(500))
    told = data.ConcatDataset([data_sets.Told(), data.Subset(rows, [100])])
    found = list(
        data.DataLoader(told, None, num_workers=1, worker_init_fn=data_sets.start, multiprocessing_context=START)
    )
    assert [sample[:3] for sample in found[:4]] == [(i, True, "cpu") for i in range(4)]
    (row, other), number = found[4]
    assert (row[0], other[0], number) == (100, 53, 100)


ENDS: dict[str, tuple[dict[str, Any], type[Exception], list[str]]] = {
    "error": ({}, KeyError, ["broken file", "sample 5 of the dataset", "batch 2", "worker", "data_sets.py"]),
    "refused": ({}, RuntimeError, ["Refused: code 7", "sample 5", "data_sets.py"]),
    "killed": ({}, RuntimeError, ["killed by SIGKILL", "memory", "test_nn_data.py"]),
    "ended": ({}, RuntimeError, ["exit code 3", "test_nn_data.py"]),
    "slow": ({"timeout": 2.0}, TimeoutError, ["timeout=2", "test_nn_data.py"]),
    "no pickle": ({"collate_fn": data_sets.first_of, "batch_size": 1}, TypeError, ["cannot be pickled"]),
}


@pytest.mark.parametrize("case", ENDS)
def test_ends_of_workers(case: str) -> None:
    options, kind, words = ENDS[case]
    loader = data.DataLoader(
        data_sets.Bad(case),
        num_workers=1,
        multiprocessing_context=START,
        **{"batch_size": 2, **options},
    )
    batches = iter(loader)
    assert np.shape(next(batches)) in ((2,), ())
    begun = time.monotonic()
    with pytest.raises(kind) as found:
        list(batches)
    assert time.monotonic() - begun < 20
    text = str(found.value) + "".join(getattr(found.value, "__notes__", []))
    for word in words:
        assert word in text
    assert not multiprocessing.active_children()


class Held:
    """A context whose pipes stay open, as on Windows those of a worker that ends before it has taken its end."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context(START)
        self._held: list[Any] = []

    def Pipe(self, duplex: bool) -> Any:
        pipe = self._context.Pipe(duplex)
        self._held.append(open(os.dup(pipe[1].fileno()), "wb"))  # noqa: SIM115
        return pipe

    def close(self) -> None:
        for file in self._held:
            file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def test_a_worker_that_ends_leaves_nobody_waiting_for_its_pipe() -> None:
    context = Held()
    with closing(context), pytest.raises(RuntimeError, match="exit code 3"):
        list(data.DataLoader(data_sets.Bad("ended"), 2, num_workers=1, multiprocessing_context=context, timeout=20))


def test_errors_in_this_process_name_the_sample() -> None:
    with pytest.raises(KeyError) as found:
        list(data.DataLoader(data_sets.Bad("error"), batch_size=2))
    assert "sample 5 of the dataset, for batch 2" in found.value.__notes__[0]


# The position


KINDS: dict[str, Callable[[], Any]] = {
    "shuffled": lambda: data.DataLoader(range(11), 3, shuffle=True),
    "sampler": lambda: data.DataLoader(range(11), 3, sampler=data.WeightedRandomSampler([1] * 11, 11)),
    "old generator": lambda: data.DataLoader(range(11), 3, True, generator=np.random.Generator(np.random.MT19937(4))),
    "in order": lambda: data.DataLoader(range(11), 3),
    "processes": lambda: data.DataLoader(range(22), 3, sampler=data.DistributedSampler(range(22), 2, 1)),
    "iterable": lambda: data.DataLoader(data_sets.Counting(11), 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_state_continues_in_the_middle(kind: str) -> None:
    loader = KINDS[kind]()
    list(loader)
    batches = iter(loader)
    next(batches)
    saved = json.dumps(loader.state_dict())
    rest = lists(list(batches))
    after = lists(list(loader))
    other = KINDS[kind]()
    other.load_state_dict(json.loads(saved))
    copied, loaded = copy.deepcopy(other), pickle.loads(pickle.dumps(other))
    for again in (other, copied, loaded):
        assert again.state_dict()["batch"] == 1
        assert lists(list(again)) == rest
        assert again.state_dict()["batch"] == 0
        assert lists(list(again)) == after


@pytest.mark.parametrize("steps", [None, 3])
@pytest.mark.usefixtures("no_curves")
def test_fit_resumes_in_the_middle_of_an_epoch(steps: int | None, tmp_path: Path) -> None:
    def loader() -> Any:
        return data.DataLoader(data.TensorDataset(X, Y), 16, shuffle=True, generator=5)

    def stop(state: nn.FitState) -> None:
        if state.step == 6:
            state.stop()

    class Stop(nn.Callback):
        on_step_end = staticmethod(stop)  # type: ignore[assignment]

    whole = Net()
    fit(whole, loader(), steps_per_epoch=steps, epochs=3)
    first = Net()
    fit(first, loader(), steps_per_epoch=steps, epochs=3, directory=tmp_path, callbacks=Stop())
    second = Net()
    fit(second, loader(), steps_per_epoch=steps, epochs=3, directory=tmp_path, resume=True)
    assert state(second) == state(whole)
    other = data.DataLoader(data.TensorDataset(X, Y), 8, shuffle=True)
    with pytest.raises(ValueError, match="batch_size was 16 and is 8"):
        fit(Net(), other, directory=tmp_path, resume=True)


def test_batches_on_a_device() -> None:
    import jax

    dataset = data.TensorDataset(np.arange(7), np.arange(7.0))
    loader = data.DataLoader(dataset, 2, device=jax.devices()[0])
    batches = iter(loader)
    x, y = next(batches)
    assert isinstance(x, jax.Array)
    assert (x.dtype, y.dtype) == (np.int64, np.float64)
    # What is on its way has not been given.
    assert loader.state_dict()["batch"] == 1
    assert [np.asarray(x).tolist() for x, _ in batches] == [[2, 3], [4, 5], [6]]
    assert isinstance(next(iter(data.DataLoader(dataset, 2, pin_memory=True)))[0], np.ndarray)


class Batched(data.IterableDataset):
    """A dataset whose items are batches."""

    def __iter__(self) -> Iterator[Any]:
        return iter(nn.batches(X, Y, batch_size=16, shuffle=False))


def test_fit_takes_loaders_and_maps(tmp_path: Path) -> None:
    by_loader, by_batches, by_map = Net(), Net(), Net()
    fit(by_loader, data.DataLoader(data.TensorDataset(X, Y), 16))
    fit(by_batches, nn.batches(X, Y, batch_size=16, shuffle=False))
    mapped = np.memmap(tmp_path / "x.bin", X.dtype, "w+", shape=X.shape)
    mapped[:] = X
    fit(by_map, nn.batches(mapped, Y, batch_size=16, shuffle=False))
    assert state(by_loader) == state(by_batches) == state(by_map)
    whole = Net()
    fit(whole, data.DataLoader(Batched(), batch_size=None))
    assert state(whole) == state(by_map)


def test_fit_takes_loaders_and_datasets_of_torch_and_hugging_face() -> None:
    torch = pytest.importorskip("torch")
    datasets = pytest.importorskip("datasets")
    expected = Net()
    fit(expected, data.DataLoader(data.TensorDataset(X, Y), 16))
    of_torch = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    rows = datasets.Dataset.from_dict({"x": list(X), "target": list(Y)}).with_format("numpy")

    def named(epoch: int) -> Iterator[Any]:
        yield from rows.iter(batch_size=16)

    for source in (
        data.DataLoader(of_torch, 16),
        data.DataLoader(rows, 16),
        torch.utils.data.DataLoader(of_torch, 16),
        named,
    ):
        model = Net()
        fit(model, source)
        assert state(model) == state(expected)
    for dataset in (of_torch, rows):
        with pytest.raises(TypeError, match=r"nn\.data\.DataLoader\(dataset"):
            fit(Net(), dataset)


# What is refused


class NoBatch:
    """Neither a dataset nor anything else."""


class OfTorch:
    """A generator that NumPy does not know."""


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], list[str]]] = {
    "no dataset": (lambda: data.DataLoader(NoBatch()), TypeError, ["__getitem__", "NoBatch"]),
    "dictionary": (lambda: data.DataLoader({"x": X}), TypeError, ["StackDataset(x=x, y=y)"]),
    "batch_size": (lambda: data.DataLoader(X, batch_size=0), ValueError, ["batch_size", "0"]),
    "two orders": (lambda: data.DataLoader(X, shuffle=True, sampler=[1]), ValueError, ["leave out shuffle"]),
    "batch_sampler": (
        lambda: data.DataLoader(X, 4, True, batch_sampler=[[1]], drop_last=True),
        ValueError,
        ["leave out shuffle, batch_size, drop_last"],
    ),
    "no batches": (lambda: data.DataLoader(X, None, drop_last=True), ValueError, ["drop_last"]),
    "shuffled iterable": (
        lambda: data.DataLoader(data_sets.Counting(3), shuffle=True),
        ValueError,
        ["shuffle", "__iter__"],
    ),
    "workers": (lambda: data.DataLoader(X, num_workers=-1), ValueError, ["num_workers", "-1"]),
    "timeout": (lambda: data.DataLoader(X, timeout=-1.0), ValueError, ["timeout"]),
    "prefetch": (lambda: data.DataLoader(X, prefetch_factor=2), ValueError, ["prefetch_factor", "num_workers=1"]),
    "no prefetch": (lambda: data.DataLoader(X, num_workers=1, prefetch_factor=0), ValueError, ["positive"]),
    "fork": (
        lambda: data.DataLoader(X, num_workers=1, multiprocessing_context="fork"),
        ValueError,
        ["fork", "JAX", "'spawn'"],
    ),
    "tensors on a device": (
        lambda: data.DataLoader(X, tensors=True, device="cpu"),
        ValueError,
        ["tensors=True", "host memory"],
    ),
    "local dataset": (
        lambda: list(data.DataLoader([lambda: 0], num_workers=1)),
        TypeError,
        ["pickled", "top of a module", "num_workers=0"],
    ),
    "generator": (lambda: data.DataLoader(X, generator=OfTorch()), TypeError, ["initial_seed()"]),
    "no samples": (lambda: data.DataLoader([], shuffle=True), ValueError, ["without samples"]),
    "number of samples": (lambda: data.RandomSampler(X, num_samples=0), ValueError, ["num_samples", "0"]),
    "weights": (lambda: data.WeightedRandomSampler([1, -1], 1), ValueError, ["not negative"]),
    "few weights": (lambda: data.WeightedRandomSampler([1, 0], 2, False), ValueError, ["without replacement"]),
    "rank": (lambda: data.DistributedSampler(X, 2, 2), ValueError, ["from 0 to 1"]),
    "no arrays": (lambda: data.TensorDataset(), ValueError, ["axis of samples"]),
    "lengths of arrays": (lambda: data.TensorDataset(X, Y[:3]), ValueError, ["0: 64, 1: 3"]),
    "lengths of datasets": (lambda: data.StackDataset(a="ab", b="a"), ValueError, ["a: 2, b: 1"]),
    "no datasets": (lambda: data.StackDataset(), ValueError, ["by name"]),
    "nothing to concatenate": (lambda: data.ConcatDataset([]), ValueError, ["at least"]),
    "iterable to concatenate": (
        lambda: data.ConcatDataset([data_sets.Counting(2)]),
        TypeError,
        ["ChainDataset"],
    ),
    "beyond": (lambda: data.ConcatDataset([[1], [2]])[2], IndexError, ["index 2", "2 samples"]),
    "parts": (lambda: data.random_split(X, [3, 4]), ValueError, ["sum 7", "64 samples"]),
    "negative part": (lambda: data.random_split(X, [65, -1]), ValueError, ["negative"]),
    "shapes": (lambda: data.default_collate([X[0], X[:2]]), ValueError, ["(3,)", "(2, 3)", "collate_fn"]),
    "deep shapes": (lambda: data.default_collate([{"a": [X[0]]}, {"a": [X]}]), ValueError, ["['a'][0]"]),
    "names": (lambda: data.default_collate([{"a": 1}, {"b": 1}]), ValueError, ["['a']", "['b']"]),
    "lengths": (lambda: data.default_collate([(1,), (1, 2)]), ValueError, ["lengths", "number 1"]),
    "nothing": (lambda: data.default_collate([(1, None)]), TypeError, ["NoneType at [1]", "collate_fn"]),
    "other batches": (
        lambda: data.DataLoader(range(4)).load_state_dict(data.DataLoader(range(3)).state_dict()),
        ValueError,
        ["size was 3 and is 4"],
    ),
    "dataset for fit": (
        lambda: fit(Net(), data.TensorDataset(X, Y)),
        TypeError,
        ["nn.data.DataLoader(dataset", "batch_size=None"],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case: str) -> None:
    make, kind, words = MISTAKES[case]
    with pytest.raises(kind) as found:
        make()
    text = str(found.value)
    for word in [*words, "test_nn_data.py" if case != "dataset for fit" else ""]:
        assert word in text
