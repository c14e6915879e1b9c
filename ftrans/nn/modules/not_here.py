"""Methods of torch's modules that there are none of here: asking a module for one says what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base.source import at_line, user_line


class NotHere:
    """A name that a class knows and its instances do not have, so that `hasattr` is False.

    Unlike in `__getattr__`, an error in a property of the user's class stays what it is.

    Args:
        instead: what to write.
    """

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, x: Any, owner: type) -> Any:
        if x is None:
            return self
        raise AttributeError(
            f"{type(x).__name__} has no attribute {self._name!r}; {self._instead}{at_line(user_line())}",
            name=self._name,
            obj=x,
        )


_TO_DEVICE = "write model.to(device) with a device of JAX, or the name of a platform"


class WithoutTorchsOwn:
    """The names of torch that modules are without."""

    # Type checkers report these names by themselves, and modules of users may have attributes of them.
    if not TYPE_CHECKING:
        compile = NotHere("write step = nn.jit(step) for a function of the model, or nn.jit(model) in its place")
        type = NotHere("write model.to(dtype), such as model.to(np.float16), or model.half()")
        share_memory = NotHere(
            "processes have no arrays in common: give them model.state_dict(), or put the model on several devices by "
            "nn.shard or nn.data_parallel"
        )
        to_empty = NotHere(f"{_TO_DEVICE}; arrays always hold values here, so nothing has to be allocated first")
        xpu = NotHere(_TO_DEVICE)
        ipu = NotHere(_TO_DEVICE)
        mtia = NotHere(_TO_DEVICE)

    def __dir__(self) -> list[str]:
        """What can be written behind a dot: none of these names, nor the numbers that containers have for modules."""
        cls = type(self)
        names = super().__dir__()
        return [x for x in names if x.isidentifier() and not isinstance(getattr(cls, x, None), NotHere)]
