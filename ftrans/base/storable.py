"""What can be written down: programs as source, as text that can be read again, and by pickle.

The package that writes is above all that it writes, and is imported when something is first written.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, Self

# Under this key a program may hold the names of its inputs.
INPUT_NAMES = "names of inputs"


class Storable:
    """Base class of programs: their forms outside of this process."""

    __slots__ = ()

    # Finds a module of the package `storage` by its name.
    _storage: ClassVar[Callable[[str], Any]]

    def to_source(self, path: str | PathLike[str] | None = None) -> str:
        """Source of a function of NumPy with the same results, which runs without ftrans.

        The source imports NumPy, and SciPy where the program needs it.  It has the operations of the NumPy evaluator in
        the same order, so its results are the same bits; only what `ft.jit` compiled inside of the program is computed
        by NumPy here, which rounds otherwise.  The function takes the inputs of the program, and returns its result, or
        a tuple if there are several.

        Args:
            path: a file name that ends in `.py`, to write to.  Large constants are then written beside it, in a file
                with the ending `.npz`.  Without it, the source contains all constants.

        Returns:
            The source.

        Raises:
            TypeError: the program calls Python functions of the user or JAX code; the message names it and the line.
            ValueError: `path` does not end in `.py`.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> gradient = ft.trace(ft.grad(lambda x: np.sum(np.sin(x) ** 2)))(np.zeros(3))
            >>> names = {}
            >>> exec(gradient.to_source(), names)
            >>> bool(np.allclose(names["grad_lambda"](np.ones(3)), np.sin(2)))
            True
        """
        source: str = Storable._storage("source").to_source(self, path)
        return source

    def to_json(self) -> str:
        """The program as text, from which `from_json` makes an equal one, in any process.

        Constants are exact.  The lines of the user's code, which messages name, are kept as text.  Derivative rules are
        kept as the programs that they state; a rule that is Python code until it is asked for, such as that of
        `odeint`, is not, so that differentiating what is read is an error: differentiate before.

        Returns:
            The text: an object of JSON.

        Raises:
            TypeError: the program calls a Python function or JAX code, or holds a primitive that is not ftrans's; the
                message names it and the line.

        Example:
            >>> import numpy as np, ftrans as ft
            >>> program = ft.trace(lambda x: np.sin(x) * 2.0)(1.0)
            >>> ft.Program.from_json(program.to_json())(0.5)
            [np.float64(0.958851077208406)]
        """
        text: str = Storable._storage("program_text").to_json(self)
        return text

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The program that `to_json` has written.

        No code is executed: primitives are looked up by name among those of ftrans, and the types of all equations are
        checked.

        Args:
            text: the text.

        Returns:
            The program.

        Raises:
            TypeError: `text` is not a string.
            ValueError: it is not a program, or that of a version that is not known; the message says what is wrong.
        """
        program: Self = Storable._storage("program_text").from_json(text)
        return program

    def __reduce__(self) -> Any:
        return Storable._storage("pickling").reduced(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self
