"""The precision of products.  It is a setting of JAX's, and so part of the key of all that JAX keeps compiled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .starting import start

_SETTING = "jax_default_matmul_precision"


class Precision:
    """A precision of products that has been set for the process, or for this thread in `with` blocks.

    Args:
        name: what JAX calls it.
    """

    def __init__(self, name: str) -> None:
        start()
        import jax

        self._jax: Any = jax
        self._name = name
        self._before = self._of_process()
        self._is_for_blocks = False
        self._blocks: list[Any] = []
        jax.config.update(_SETTING, name)

    def _of_process(self) -> Any:
        # In a new thread no block is open.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: self._jax.config.jax_default_matmul_precision).result()

    def __repr__(self) -> str:
        return f"matmul_precision({self._name!r})"

    def __enter__(self) -> Precision:
        if not self._is_for_blocks:
            self._is_for_blocks = True
            self._jax.config.update(_SETTING, self._before)
        self._blocks.append(self._jax.default_matmul_precision(self._name))
        self._blocks[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._blocks.pop().__exit__(*error)
