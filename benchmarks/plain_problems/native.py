"""Derivatives written by hand in C++, compiled on first use where there is a compiler."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy

SOURCES = Path(__file__).parent / "cpp"
COMPILER = shutil.which("g++")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-std=c++17", "-fPIC")


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """What `cpp/NAME.cpp` compiles to."""
    assert COMPILER is not None
    with tempfile.TemporaryDirectory() as folder:
        compiled, target = Path(folder) / f"{name}.o", Path(folder) / f"{name}.so"
        subprocess.run([COMPILER, *FLAGS, "-c", str(SOURCES / f"{name}.cpp"), "-o", str(compiled)], check=True)
        # Linked with -ffast-math, a library would make the whole process take subnormal numbers as zeros.
        subprocess.run([COMPILER, "-shared", str(compiled), "-o", str(target)], check=True)
        return ctypes.CDLL(str(target))


def call(name: str, *arguments: Any) -> None:
    """Call the function of a file, which has its name; arrays are passed as pointers, and filled."""
    getattr(library(name), name)(
        *(pointer(a) if isinstance(a, numpy.ndarray) else ctypes.c_int64(a) for a in arguments)
    )


def pointer(array: numpy.ndarray) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def bundle_adjustment(z: numpy.ndarray, cameras: int, seeing: numpy.ndarray, seen: numpy.ndarray) -> numpy.ndarray:
    """The entries of the Jacobian, row by row."""
    entries = numpy.empty((len(seen), 2, 13))
    call("bundle_adjustment", z, cameras, seeing, seen, len(seen), entries)
    return entries.reshape(-1)


def lstm(main: numpy.ndarray, extra: numpy.ndarray, start: numpy.ndarray, characters: numpy.ndarray) -> Any:
    """The gradient in both arrays of parameters."""
    result = numpy.zeros_like(main), numpy.zeros_like(extra)
    call("lstm", main, extra, start, characters, len(start) // 2, len(characters), *result)
    return result


def mixture(params: Any, points: numpy.ndarray, wishart_gamma: Any, wishart_m: Any) -> Any:
    """The gradient in weights, means and factors."""
    weights, means, _ = params
    result = tuple(map(numpy.zeros_like, params))
    prior = numpy.array([wishart_gamma, wishart_m])
    call("mixture", *params, points, prior, len(points), len(weights), means.shape[1], *result)
    return result
