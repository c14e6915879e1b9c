"""Exported: a function as StableHLO in one file, which runs by JAX alone, without the code that it was made from.

The file is a zip archive of three parts, and no code is executed to read it:

    manifest.json           the types of arguments and results, platforms, versions
    program.bin             what `jax.export.deserialize` reads
    constants.safetensors   the arrays that the function closes over, which are its first argument
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..api.call import name_of
from ..base.interrupts import uninterrupted
from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..nn.training.files import replacing
from ..xla import about_to_run, device_arrays, is_jax, is_jax_tracer, outside_of_traces, to_numpy
from .lowering import lowered, portable
from .signature import BadCall, Signature

_FORMAT, _VERSION = "ftrans-export", 1
_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_PARTS = ("manifest.json", "program.bin", "constants.safetensors")


class Exported:
    """A function of arrays that has been exported.

    A call takes arguments of the containers, shapes and dtypes of those that it was exported with, and computes in
    their precision whether or not JAX's 64-bit types are switched on.  It returns NumPy arrays, or JAX arrays if an
    argument is one.

    Args:
        manifest: what is known of it, as JSON.
        program: the program, serialized by `jax.export`.
        constants: the arrays that it closes over, by name.

    Attributes:
        manifest: see above.
        name: the name of the function.
        platforms: where it runs.
        arguments: its arguments; `print` shows their types.
        results: its results.
    """

    def __init__(self, manifest: dict[str, Any], program: bytes, constants: dict[str, Any]) -> None:
        about_to_run()
        import jax

        self.manifest = manifest
        self.name: str = manifest["name"]
        self.arguments = Signature.from_json(manifest["arguments"])
        self.results = Signature.from_json(manifest["results"])
        self._program = program
        self._arrays = {name: constants[name] for name in manifest["constants"]}
        self._jax: Any = jax
        self._exported = _deserialized(program, manifest)
        self.platforms: tuple[str, ...] = tuple(self._exported.platforms)
        expected = [x.dtype for x in (*self._arrays.values(), *self.arguments.leaves)]
        if [x.dtype for x in self._exported.in_avals] != expected:
            raise _Unreadable("the program takes other arguments than its manifest says")
        self._function = jax.jit(self._refusing_derivatives())
        self._constants: list[Any] | None = None

    def __repr__(self) -> str:
        return f"<exported {self.name}: {self.arguments} -> {self.results} for {', '.join(self.platforms)}>"

    def __reduce__(self) -> Any:
        return Exported, (self.manifest, self._program, self._arrays)

    def __call__(self, *args: Any) -> Any:
        """The result of the function.

        Raises:
            TypeError: an argument is of another structure, shape or dtype, or is traced.
            ValueError: the program is not for this platform.
        """
        count = len(self.arguments.structure["tuple"])
        if len(args) != count:
            raise TypeError(f"{self.name} takes {count} arguments, {len(args)} were given{at_line(user_line())}")
        try:
            arrays = self.arguments.arrays(args)
        except BadCall as error:
            raise TypeError(f"{self.name}: {error}{at_line(user_line())}") from None
        return self.results.containers(self._run(arrays))

    @uninterrupted
    def _run(self, arrays: Sequence[Any]) -> list[Any]:
        if any([isinstance(x, Tracer) for x in arrays]):
            raise TypeError(
                f"{self.name} has been exported, so it cannot be traced or differentiated any more; export its "
                f"derivative, ft.export(ft.grad(f), ...), or use the function itself{at_line(user_line())}"
            )
        self._check_platform()
        if self._constants is None:
            self._constants = device_arrays([*self._arrays.values()])
        is_in_jax = any(map(is_jax_tracer, arrays))
        try:
            with self._jax.enable_x64(True), nullcontext() if is_in_jax else outside_of_traces():
                outs = self._function(self._constants, list(arrays))
        except NotImplementedError as error:
            if not is_in_jax:
                raise
            raise self._not_transformed() from error
        return list(outs) if any(map(is_jax, arrays)) else [to_numpy(x) for x in outs]

    def _refusing_derivatives(self) -> Callable[..., Any]:
        """The function for JAX, whose own errors for derivatives of exported functions name no way out."""

        @self._jax.custom_jvp  # type: ignore[untyped-decorator, unused-ignore]
        def call(constants: Any, arrays: Any) -> Any:
            return self._exported.call(constants, arrays)

        @call.defjvp  # type: ignore[untyped-decorator, unused-ignore]
        def refuse(primals: Any, tangents: Any) -> Any:
            raise self._not_transformed()

        return call  # type: ignore[no-any-return, unused-ignore]

    def _not_transformed(self) -> TypeError:
        return TypeError(
            f"{self.name} has been exported, so JAX can compile it, but not differentiate or map it; export its "
            f"derivative, or give it a batch: ft.export(ft.grad(f), x, batch=0){at_line(user_line())}"
        )

    def _check_platform(self) -> None:
        here = self._jax.default_backend()
        if here not in self.platforms and not (here == "gpu" and {"cuda", "rocm"} & {*self.platforms}):
            raise ValueError(
                f"{self.name} was exported for {', '.join(self.platforms)}, but JAX runs on {here} here; export it for "
                f"that, too (platforms=...){at_line(user_line())}"
            )

    def stablehlo(self) -> str:
        """The program as text."""
        return str(self._exported.mlir_module())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, replacing an existing one at once."""
        library = _safetensors()
        parts = (json.dumps(self.manifest, indent=1).encode(), self._program, library.numpy.save(self._arrays))
        with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
            for name, part in zip(_PARTS, parts, strict=True):
                archive.writestr(name, part)


def export(
    f: Callable[..., Any],
    *args: Any,
    batch: int | Sequence[int] | None = None,
    platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
    path: str | os.PathLike[str] | None = None,
) -> Exported:
    """Export a function as StableHLO, which runs without the function's code, and without ftrans.

    The program is that of the whole function, with the derivatives that ftrans has taken in it: `ft.export(ft.grad(f),
    x)` exports a gradient.  Arrays that `f` closes over, such as the parameters of a module, are constants beside the
    program.  Python control flow must not depend on the values of arguments.

    Args:
        f: the function.
        args: arguments of the shapes and dtypes that it will be called with, in tuples, lists, dicts and NamedTuples.
        batch: positions of arguments that will get a leading axis of any length, over which `f` is mapped; `f` and
            `args` are those of one row.  All results get the axis, too.
        platforms: where it will run: some of "cpu", "cuda", "rocm" and "tpu".  They need not be there now.
        path: a file to write it to.  What exists there is replaced.

    Returns:
        An `Exported`: a function of the same arguments with a method `save(path)`.

    Raises:
        TypeError: an argument or a result is not an array or in a container of another class, or Python code asks for
            the value of a traced one.
        ValueError: there is no such platform or position.
        NotImplementedError: `f` calls Python code on the host, or JAX cannot lower it for one of the platforms.
        ImportError: the packages flatbuffers or safetensors are missing.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> slope = ft.export(ft.grad(lambda x: x**3), 1.0, batch=0)
        >>> slope(np.array([1.0, 2.0]))
        array([ 3., 12.])
    """
    chosen = _platforms(platforms)
    if path is not None:
        _check_path("export", path)
    _safetensors()
    taken = portable("export", f, args, batch)
    found = lowered("export", taken, chosen)
    constants = dict(zip(taken.names, taken.stored(), strict=True))
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "name": name_of(f),
        "platforms": list(chosen),
        "arguments": taken.arguments.to_json(),
        "results": taken.results.to_json(),
        "constants": list(constants),
        "written by": {name: _version(name) for name in ("ftrans", "jax", "numpy")},
        "calling convention": found.calling_convention_version,
    }
    try:
        program = found.serialize()
    except ImportError:
        raise _missing("flatbuffers") from None
    exported = Exported(manifest, bytes(program), constants)
    if path is not None:
        exported.save(path)
    return exported


def _check_path(what: str, path: Any) -> None:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{what} takes the path of a file, not {type(path).__name__}{at_line(user_line())}")


def load_exported(path: str | os.PathLike[str]) -> Exported:
    """Read a function that `ft.export` has written.

    No code in the file is executed, and none of the user's is needed; the program runs by JAX.

    Args:
        path: the file.

    Returns:
        An `Exported`: a function of the arguments that it was exported for.

    Raises:
        TypeError: `path` is no path.
        ImportError: the packages flatbuffers or safetensors are missing.
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged or something else, or it was written by a version that this one cannot read.

    Example:
        >>> import numpy as np, os, tempfile, ftrans as ft
        >>> path = os.path.join(tempfile.mkdtemp(), "f.export")
        >>> _ = ft.export(lambda x: x @ x, np.ones(3), path=path)
        >>> ft.load_exported(path)(np.arange(3.0))
        np.float64(5.0)
    """
    _safetensors()
    _check_path("load_exported", path)
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}{at_line(user_line())}")
    try:
        with zipfile.ZipFile(path) as archive:
            manifest, program, constants = [archive.read(part) for part in _PARTS]
        return _from_parts(json.loads(manifest), program, constants)
    except (ImportError, OSError):
        raise
    except Exception as error:
        # What can go wrong depends on what somebody has written there.
        why = str(error) or type(error).__name__
        raise ValueError(
            f"{path} is damaged, or no file of a version of ft.export that can be read here: {why}"
            + at_line(user_line())
        ) from None


class _Unreadable(Exception):
    """What was read is no function; the message says why."""


def _from_parts(manifest: Any, program: bytes, constants: bytes) -> Exported:
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise _Unreadable("its manifest is none of a function that was exported")
    if manifest.get("version") != _VERSION:
        raise _Unreadable(
            f"it has version {manifest.get('version')} of the format, this ftrans reads {_VERSION}; use the versions "
            f"that wrote it: {manifest.get('written by')}"
        )
    library = _safetensors()
    try:
        return Exported(manifest, program, library.numpy.load(constants))
    except library.SafetensorError as error:
        raise _Unreadable(f"its constants cannot be read ({error})") from None
    except ImportError:
        raise _missing("flatbuffers") from None
    except _Unreadable:
        raise
    except Exception as error:
        raise _Unreadable(f"its manifest is incomplete ({type(error).__name__}: {error})") from None


def _deserialized(program: bytes, manifest: dict[str, Any]) -> Any:
    """JAX's `Exported` object."""
    import jax.export

    try:
        found = jax.export.deserialize(bytearray(program))
        # StableHLO of a newer version is noticed here, and otherwise in the first call.
        found.mlir_module()
        return found
    except ImportError:
        raise
    except Exception as error:
        raise _Unreadable(
            f"JAX {_version('jax')} cannot read the program, which was written by {manifest.get('written by')} "
            f"({type(error).__name__}: {error})"
        ) from None


def _platforms(given: Any) -> tuple[str, ...]:
    """The platforms that the user has asked for."""
    chosen = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, tuple | list) else None
    if not chosen or not all(p in _PLATFORMS for p in chosen):
        raise ValueError(
            f"platforms of export are one or several of {', '.join(map(repr, _PLATFORMS))}, not {given!r}"
            + at_line(user_line())
        )
    return tuple(dict.fromkeys(chosen))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _safetensors() -> Any:
    """The safetensors library."""
    try:
        import safetensors.numpy
    except ImportError:
        raise _missing("safetensors") from None
    return safetensors


def _missing(package: str) -> ImportError:
    return ImportError(f"exports need the package {package}: pip install 'ftrans[export]'{at_line(user_line())}")
