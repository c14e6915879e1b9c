"""The contenders' libraries behind one face: each one's NumPy, gradient, compiler and arrays.

A benchmark function is written once, against a namespace `np`; `Library.contender` turns it into
the gradient that a user of that library would call. Everything computes in the dtype of its input.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy

from .harness import Contender

OPTIONAL = ("ftrans", "autograd", "torch")


@dataclass(frozen=True)
class Library:
    """What a benchmark needs of a library; `ready` waits for a result that is computed asynchronously."""

    np: Any
    gradient: Callable[[Callable[..., Any]], Callable[..., Any]]
    scan: Callable[..., Any]
    array: Callable[[numpy.ndarray], Any] = numpy.asarray
    ready: Callable[[Any], Any] = lambda result: result
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext

    def contender(self, function: Callable[..., Any], arguments: Any) -> Contender:
        """The gradient of `function(self.np, *arguments)` with respect to the first of `arguments`."""
        gradient = self.gradient(functools.partial(function, self.np))
        with self.scope():
            own = self.arrays(arguments)
        return Contender(lambda: self.ready(gradient(*own)), self.scope)

    def arrays(self, arguments: Any) -> Any:
        if isinstance(arguments, tuple):
            return tuple(map(self.arrays, arguments))
        if isinstance(arguments, dict):
            return {key: self.arrays(value) for key, value in arguments.items()}
        return self.array(arguments)


def available(libraries: Mapping[str, Callable[[], Library]]) -> dict[str, Library]:
    """Those of `libraries` that are installed."""
    found = {}
    for name, library in libraries.items():
        try:
            found[name] = library()
        except ModuleNotFoundError as error:
            # One that is there but broken is not passed over.
            if error.name not in OPTIONAL:
                raise
    return found


def ftrans() -> Library:
    """Un-jitted, on NumPy arrays."""
    import ftrans as ft

    return Library(numpy, ft.grad, ft.scan)


def ftrans_jit() -> Library:
    """Compiled, NumPy in and out."""
    import ftrans as ft

    return Library(numpy, lambda f: ft.jit(ft.grad(f)), ft.scan)


def ftrans_jit_on(device: Any) -> Library:
    """Compiled, JAX arrays on `device` in and out, like its peer below."""
    import jax

    import ftrans as ft

    def array(x: numpy.ndarray) -> Any:
        with jax.enable_x64(True):
            return jax.device_put(x, device)

    return Library(numpy, lambda f: ft.jit(ft.grad(f)), ft.scan, array, jax.block_until_ready)


def jax_on(device: Any) -> Library:
    """Un-jitted, JAX arrays on `device` in and out."""
    import jax

    return Library(
        jax.numpy,
        jax.grad,
        jax.lax.scan,
        lambda x: jax.device_put(x, device),
        jax.block_until_ready,
        lambda: jax.enable_x64(True),
    )


def jax_jit_on(device: Any) -> Library:
    """Compiled, JAX arrays on `device` in and out."""
    import jax

    return dataclasses.replace(jax_on(device), gradient=lambda f: jax.jit(jax.grad(f)))


def jax_jit() -> Library:
    """Compiled, NumPy in and out."""
    import jax

    return Library(
        jax.numpy,
        lambda f: jax.jit(jax.grad(f)),
        jax.lax.scan,
        ready=functools.partial(jax.tree.map, numpy.asarray),
        scope=lambda: jax.enable_x64(True),
    )


def autograd() -> Library:
    """HIPS autograd, on NumPy arrays."""
    import autograd
    import autograd.numpy

    return Library(autograd.numpy, autograd.grad, functools.partial(loop, autograd.numpy.stack))


def torch_on(device: Any) -> Library:
    """Eager torch, the gradient taken by its tape, on the CPU or on a GPU as `device` of JAX says."""
    import torch

    place = "cpu" if device.platform == "cpu" else "cuda"

    class TorchNumpy:
        """torch under NumPy's names."""

        max = staticmethod(torch.amax)
        eye = staticmethod(functools.partial(torch.eye, dtype=torch.float64))
        zeros = staticmethod(functools.partial(torch.zeros, dtype=torch.float64))

        @staticmethod
        def logaddexp(x: Any, y: Any) -> Any:
            return torch.logaddexp(torch.as_tensor(x, dtype=y.dtype), y)

        def __getattr__(self, name: str) -> Any:
            return getattr(torch, name)

    def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
        def gradient_at(params: Any, *data: Any) -> Any:
            if isinstance(params, tuple):
                inputs = tuple(p.detach().requires_grad_() for p in params)
                return torch.autograd.grad(function(inputs, *data), inputs)
            x = params.detach().requires_grad_()
            return torch.autograd.grad(function(x, *data), x)[0]

        return gradient_at

    def ready(result: Any) -> Any:
        if place == "cuda":
            torch.cuda.synchronize()
        return result

    # torch.device as a context makes every call slower, so only where the default will not do.
    scope = nullcontext if place == "cpu" else lambda: torch.device(place)
    scan = functools.partial(loop, torch.stack)
    return Library(TorchNumpy(), gradient, scan, lambda x: torch.tensor(x, device=place), ready, scope)


def loop(
    stack: Callable[[list[Any]], Any], step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any
) -> tuple[Any, Any]:
    """A scan for libraries that run Python's loop as it stands."""
    outputs = []
    for x in xs:
        carry, output = step(carry, x)
        outputs.append(output)
    return carry, stack(outputs)
