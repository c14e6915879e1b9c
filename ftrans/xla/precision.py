"""The precision of products.  It is a setting of JAX's, and so part of the key of all that JAX keeps compiled."""

from __future__ import annotations

from typing import Any, ClassVar

from ..base.forks import lock
from .starting import start

_SETTING = "jax_default_matmul_precision"
_lock = lock()


class Precision:
    """A precision of products that has been set for the process, or for this thread in `with` blocks.

    Args:
        name: what JAX calls it.
    """

    # The one that the setting of the process is from.
    _last: ClassVar[Precision | None] = None

    def __init__(self, name: str) -> None:
        start()
        import jax

        self._jax: Any = jax
        self._name = name
        self._is_for_blocks = False
        self._blocks: list[Any] = []
        with _lock:
            last, before = Precision._last, self._of_process()
            # Another thread may be about to open a block, and then what it has set is no setting of the process.
            self._before = last if last is not None and last._name == before else before
            self._set_process(self)

    def _of_process(self) -> Any:
        from concurrent.futures import ThreadPoolExecutor

        # In a new thread no block is open.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: self._jax.config.jax_default_matmul_precision).result()

    def _set_process(self, to: Any) -> None:
        """Set the process to what one has said, or to what JAX's setting was before anybody did."""
        while isinstance(to, Precision) and to._is_for_blocks:
            to = to._before
        Precision._last = to if isinstance(to, Precision) else None
        self._jax.config.update(_SETTING, to._name if isinstance(to, Precision) else to)

    def __repr__(self) -> str:
        return f"matmul_precision({self._name!r})"

    def __enter__(self) -> Precision:
        with _lock:
            is_set = Precision._last is self
            self._is_for_blocks = True
            if is_set:
                self._set_process(self._before)
        self._blocks.append(self._jax.default_matmul_precision(self._name))
        self._blocks[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._blocks.pop().__exit__(*error)
