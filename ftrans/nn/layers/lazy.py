"""Lazy layers: the size of the input is that of the first array they are called with, and parameters are made then."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np

from ...base.forks import lock
from ...base.source import at_line, user_line
from ...core.trace import current_builder
from ..cells import epoch
from ..cells.kinds import Parameter
from ..functional.arguments import array, described
from ..modules.module import Module
from ..modules.nested import attributes
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip


_becoming = lock()


class _Lazy(Module):
    """A layer that becomes another one, with parameters, in its first call.

    Until then, `weight` is an empty parameter, of the dtype that parameters will have.
    """

    _becomes: ClassVar[Any]
    # The axis of the size, by the number of axes of the input; the last one if there is no entry at all.
    _places: ClassVar[dict[int, int]]
    # The arguments but the first, which is the size of the input.
    _taken: ClassVar[inspect.Signature]

    weight: Any

    def __init_subclass__(cls, becomes: Any = None, places: dict[int, int] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._becomes, cls._places = becomes, places or {}
        cls._taken = inspect.Signature(list(inspect.signature(becomes).parameters.values())[1:])
        cls.__signature__ = cls._taken  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            given = self._taken.bind(*args, **kwargs).arguments
        except TypeError as error:
            names = ", ".join(self._taken.parameters)
            raise TypeError(f"{type(self).__name__}({names}): {error}{at_line(user_line())}") from None
        self._given = {name: x for name, x in given.items() if name != "dtype"}
        dtype = given.get("dtype")
        self.weight = Parameter(np.empty((0,), np.float32 if dtype is None else dtype))

    def forward(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        """What the layer that this becomes returns."""
        with _becoming:
            # Another thread may have been first.
            if isinstance(self, _Lazy):
                self.initialize_parameters(input)
        return self.forward(input, *args, **kwargs)

    def has_uninitialized_params(self) -> bool:
        """Whether the parameters are still to be made."""
        return True

    def initialize_parameters(self, input: Any) -> None:
        """Make the parameters, and become a layer that is not lazy.

        Args:
            input: an array of the shape that the layer takes.

        Raises:
            RuntimeError: a function is traced.
            ValueError: the array has another number of axes.
        """
        if current_builder() is not None:
            raise RuntimeError(
                f"{self.described()} has no parameters yet, and cannot make them while a function is traced: call the "
                f"model once with arrays, model(x), before it is differentiated or compiled{at_line(user_line())}"
            )
        x = array(input)
        place = self._places.get(len(x.shape), None if self._places else -1)
        if place is None or not x.shape:
            counts = " or ".join(map(str, self._places)) or "some"
            raise ValueError(
                f"{self.described()} takes arrays with {counts} axes, not {described(x)}{at_line(user_line())}"
            )
        made = self._becomes(int(x.shape[place]), **self._given, dtype=self.weight.dtype)
        if not self.weight.requires_grad:
            made.requires_grad_(False)
        del self._given, self.weight
        object.__setattr__(self, "__class__", self._becomes)
        epoch.bump()
        found = attributes(made)
        # Cells belong to their first owner while there is one.
        del made
        for name, value in found.items():
            setattr(self, name, value)

    def extra_repr(self) -> str:
        return ", ".join([f"{name}={x!r}" for name, x in self._given.items()])


class LazyLinear(_Lazy, Linear, becomes=Linear):
    """`Linear` with `in_features` from the first array that it is called with.

    Lazy layers take the arguments of the others but the first.  The first call is with arrays, outside of `nn.jit` and
    of gradients, and comes before an optimizer is made or a state dictionary is loaded.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyLinear(2)
        >>> layer(np.ones((4, 3), np.float32)).shape
        (4, 2)
        >>> layer
        Linear(in_features=3, out_features=2, bias=True)
    """


class LazyConv1d(_Lazy, Conv1d, becomes=Conv1d, places={3: 1, 2: 0}):
    """`Conv1d` with `in_channels` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyConv1d(4, 3)
        >>> y = layer(np.ones((2, 3, 9), np.float32))
        >>> layer.in_channels
        3
    """


class LazyConv2d(_Lazy, Conv2d, becomes=Conv2d, places={4: 1, 3: 0}):
    """`Conv2d` with `in_channels` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyConv2d(4, 3)
        >>> y = layer(np.ones((2, 3, 9, 9), np.float32))
        >>> layer.in_channels
        3
    """


class LazyConv3d(_Lazy, Conv3d, becomes=Conv3d, places={5: 1, 4: 0}):
    """`Conv3d` with `in_channels` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyConv3d(4, 3)
        >>> y = layer(np.ones((2, 3, 5, 5, 5), np.float32))
        >>> layer.in_channels
        3
    """


class LazyConvTranspose1d(_Lazy, ConvTranspose1d, becomes=ConvTranspose1d, places={3: 1, 2: 0}):
    """`ConvTranspose1d` with `in_channels` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyConvTranspose1d(4, 3)
        >>> y = layer(np.ones((2, 3, 9), np.float32))
        >>> layer.in_channels
        3
    """


class LazyConvTranspose2d(_Lazy, ConvTranspose2d, becomes=ConvTranspose2d, places={4: 1, 3: 0}):
    """`ConvTranspose2d` with `in_channels` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyConvTranspose2d(4, 3)
        >>> y = layer(np.ones((2, 3, 9, 9), np.float32))
        >>> layer.in_channels
        3
    """


class LazyConvTranspose3d(_Lazy, ConvTranspose3d, becomes=ConvTranspose3d, places={5: 1, 4: 0}):
    """`ConvTranspose3d` with `in_channels` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyConvTranspose3d(4, 3)
        >>> y = layer(np.ones((2, 3, 5, 5, 5), np.float32))
        >>> layer.in_channels
        3
    """


class LazyBatchNorm1d(_Lazy, BatchNorm1d, becomes=BatchNorm1d, places={2: 1, 3: 1}):
    """`BatchNorm1d` with `num_features` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyBatchNorm1d()
        >>> y = layer(np.ones((2, 3, 9), np.float32))
        >>> layer.num_features
        3
    """


class LazyBatchNorm2d(_Lazy, BatchNorm2d, becomes=BatchNorm2d, places={4: 1}):
    """`BatchNorm2d` with `num_features` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyBatchNorm2d()
        >>> y = layer(np.ones((2, 3, 9, 9), np.float32))
        >>> layer.num_features
        3
    """


class LazyBatchNorm3d(_Lazy, BatchNorm3d, becomes=BatchNorm3d, places={5: 1}):
    """`BatchNorm3d` with `num_features` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyBatchNorm3d()
        >>> y = layer(np.ones((2, 3, 5, 5, 5), np.float32))
        >>> layer.num_features
        3
    """


class LazyInstanceNorm1d(_Lazy, InstanceNorm1d, becomes=InstanceNorm1d, places={3: 1, 2: 0}):
    """`InstanceNorm1d` with `num_features` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyInstanceNorm1d()
        >>> y = layer(np.ones((2, 3, 9), np.float32))
        >>> layer.num_features
        3
    """


class LazyInstanceNorm2d(_Lazy, InstanceNorm2d, becomes=InstanceNorm2d, places={4: 1, 3: 0}):
    """`InstanceNorm2d` with `num_features` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyInstanceNorm2d()
        >>> y = layer(np.ones((2, 3, 9, 9), np.float32))
        >>> layer.num_features
        3
    """


class LazyInstanceNorm3d(_Lazy, InstanceNorm3d, becomes=InstanceNorm3d, places={5: 1, 4: 0}):
    """`InstanceNorm3d` with `num_features` from the first array that it is called with; see `LazyLinear`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.LazyInstanceNorm3d()
        >>> y = layer(np.ones((2, 3, 5, 5, 5), np.float32))
        >>> layer.num_features
        3
    """
