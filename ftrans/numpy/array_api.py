"""What the Python array API standard (data-apis.org/array-api, 2024.12) asks for beyond what NumPy has.

A traced value answers `x.__array_namespace__()` with `ftrans.numpy`, whose names, parameters and dtypes are those of
the standard, so that a library written to it runs on traced values.  There is one device, NumPy's "cpu": where a
program computes is decided when it is run.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer, current_builder
from .dispatch import TABLE
from .promotion import has_tracer

__all__ = ["from_dlpack"]

VERSION = "2024.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", VERSION)


class Device(str):
    """A device, which is a string: "cpu", the memory of the host.  Its `type` is what devices of torch have."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """The kind of device."""
        return str(self)


_DEVICE = Device("cpu")
_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """`__array_namespace__`: the module `ftrans.numpy`, which conforms to the array API standard.

    Raises:
        ValueError: another version of the standard is asked for than those that it conforms to.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"ftrans.numpy conforms to the array API standard {VERSION}, and has no version {api_version!r}"
            + at_line(user_line())
        )
    return sys.modules[__package__]


def check_device(device: Any) -> None:
    """Raise if a device is asked for that is not NumPy's."""
    if device not in (None, _DEVICE):
        raise ValueError(
            f'Device not understood. Only "cpu" is allowed, but received: {device}; traced values have no device of '
            f"their own: give arguments on the one where the program is to run{at_line(user_line())}"
        )


def device(self: Any) -> str:
    """The device of the standard, which is NumPy's: "cpu"."""
    return _DEVICE


def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """The array itself, as there is one device."""
    check_device(device)
    if stream is not None:
        raise ValueError(
            f'The stream argument to to_device() is not supported by the device "cpu"{at_line(user_line())}'
        )
    return self


def no_memory(self: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
    """`__dlpack__` of a traced value, which cannot be exchanged with other libraries."""
    raise BufferError(
        f"a traced value ({self.type}) has no memory that another library could read by DLPack. Compute with "
        f"the functions of numpy or ftrans.numpy, hand it over outside of the traced function, or make the function of "
        f"torch that needs it a part of the program, by ftrans.from_torch(g){at_line(user_line())}"
    )


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array of the memory of another library's array; a traced value is returned as it is.

    Args:
        x: an array that has `__dlpack__`.
        device: None or "cpu".
        copy: whether to copy, where that is not left open by None.
    """
    check_device(device)
    if has_tracer(x):
        return TABLE[np.copy](x) if copy else x
    array = np.from_dlpack(x)
    return np.copy(array) if copy else array


class Info:
    """What `__array_namespace_info__` of the standard tells about the namespace.

    Example:
        >>> import ftrans.numpy as fnp
        >>> sorted(fnp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
    """

    def capabilities(self) -> dict[str, Any]:
        """What is possible: in a program that is compiled once, shapes cannot depend on values."""
        builder = current_builder()
        depends = builder is None or not builder.has_one_shape
        return {"boolean indexing": depends, "data-dependent shapes": depends, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of arrays for which none is given."""
        return _DEVICE

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of arrays for which none is given."""
        check_device(device)
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "intp"}
        return {kind: np.dtype(name) for kind, name in names.items()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of a kind, or of several kinds, by their names; by default all."""
        check_device(device)
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        unknown = [k for k in kinds if k not in _KINDS]
        if unknown:
            raise ValueError(
                f"unknown kind of dtypes: {unknown[0]!r}; known are {', '.join(_KINDS)}{at_line(user_line())}"
            )
        return {name: np.dtype(name) for k in kinds for name in _KINDS[k]}

    def devices(self) -> list[str]:
        """All devices."""
        return [_DEVICE]
