"""ArrayCell: a place in a module that holds an array, and what user code reads from it.

User code computes with a cell as with its array.  What that is depends on the context:

    * in a transformation that was given the cell (`nn.grad`, `nn.jit`, ...), the traced value that was put in;
    * in the forward code of a module that was called with arrays, a NumPy array;
    * elsewhere, for a parameter that requires a gradient, a leaf tensor of `ftrans.autograd`, so that values computed
      directly from a parameter do not silently lose their gradient.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...api.paths import is_compiling
from ...autograd.creation import sharing
from ...autograd.tensor import Tensor
from ...autograd.torch_methods import METHODS
from ...autograd.torch_methods.shared import size_or_shape
from ...base.cell import Eager, read
from ...base.forward_code import in_forward, plain, reading, speaking
from ...base.lookalikes import refuse_lookalike
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.trace import Builder, Tracer, current_builder
from ...core.types import ArrayType, is_complex, type_of
from ...xla import Placement, copied, gathered, is_jax, is_jax_tracer, is_readable, parts_along, place, placement_of
from ..modules.bare import BareModule
from . import epoch
from .filling import Filling, Held, filling, in_turn, note_other_read
from .operands import Operand

_filling = filling.get

# What transformations and modules ask of cells, which is not for users.
_INTERNAL = {
    "check_change", "concrete", "held", "home", "hooks", "is_given", "move", "owner", "place", "read", "recorded",
    "require_kept", "transaction", "twin",
}  # fmt: skip


class ArrayCell(Operand):
    """Base class of `Parameter`, `Buffer` and `RngState`.

    Attributes:
        held: the array that all threads see: of NumPy, or of JAX after a compiled step.
        home: the trace in which it was made, which alone may change it; None outside of traces.
        name: its attribute name.
        owner: a weak reference to its module.
        sharding: where its array is and stays, a `jax.sharding.NamedSharding`; None for one that is on no mesh.
        transaction: the lock under which compiled functions read and write it; None before the first one.
    """

    __slots__ = ("__weakref__", "held", "home", "name", "owner", "sharding", "transaction")

    # What to write where a function may not change the cell, for messages.
    _instead_of_changing = "return the new value from that function, and assign it where the module was given"

    def __init__(self, value: Any) -> None:
        self.held = _held(value)
        self.sharding: Placement | None = placement_of(self.held)
        self.home: Builder | None = current_builder()
        self.name = ""
        self.owner: weakref.ref[BareModule] | None = None
        self.transaction: Any = None

    @property
    def array(self) -> Any:
        """The array in this context: what a transformation in this thread or task has put in, else `held`."""
        around = _filling()
        if around is not None:
            found = around.find(id(self))
            if found is not None:
                found.is_read = True
                return found.held
        return self.held

    @array.setter
    def array(self, value: Any) -> None:
        self.place().held = value

    def place(self) -> ArrayCell | Held:
        """The object whose attribute `held` is the array in this context."""
        around = _filling()
        found = None if around is None else around.find(id(self))
        return self if found is None else found

    @property
    def is_given(self) -> bool:
        """Whether a transformation that runs in this thread or task was given the cell."""
        around = _filling()
        found = None if around is None else around.find(id(self))
        return found is not None and found.is_given

    def __dir__(self) -> list[str]:
        # Its methods are those of the array.
        return sorted({*super().__dir__(), *METHODS, "T"} - _INTERNAL)

    # What it is

    @property
    def type(self) -> ArrayType:
        """Shape and dtype."""
        return type_of(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array."""
        return np.dtype(self.array.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.array.shape)

    size = property(size_or_shape, doc="Number of elements; called as a method, the shape.")

    def numel(self) -> int:
        """Number of elements."""
        return int(self.size)

    @property
    def path(self) -> str:
        """The path from the outermost module, such as `encoder.0.weight`."""
        owner = None if self.owner is None else self.owner()
        above = "" if owner is None else owner.path
        return f"{above}.{self.name}" if above else self.name or type(self).__name__

    # What it holds

    @property
    def value(self) -> Any:
        """The array: of NumPy, or in a transformation the traced value.  Assigning replaces it, without a copy.

        A cell on a mesh (`nn.shard`) keeps its sharding: what is assigned is divided over the devices as before.

        A value that is assigned in the forward code of a transformation becomes a result of the transformation, and is
        put into the cell afterwards.
        """
        array = self.array
        if type(array) is np.ndarray or type(array) is Tracer:
            return array
        return self._on_host(array)

    @value.setter
    def value(self, value: Any) -> None:
        value = plain(read(value))
        self.check_change()
        place = self.place()
        if isinstance(value, Eager):
            if not (type(place) is Held and place.is_given and isinstance(place.held, Eager)):
                around = _filling()
                if around is None or around.tensors is None:
                    value = np.array(value.concrete())
                else:
                    place = self._place_for_tensor(around, around.tensors)
        elif type(value) is not Tracer:
            value = _held(value)
        old = place.held
        if tuple(old.shape) != tuple(value.shape) or old.dtype != value.dtype:
            self._check_held(value)
            epoch.bump()
        if place is self:
            self.require_kept(value)
        place.held = self._placed(value) if place is self else value

    def _placed(self, value: Any) -> Any:
        """An array that is assigned, where the cell keeps its array."""
        if type(value) is Tracer or is_jax_tracer(value):
            return value
        if self.sharding is None or tuple(value.shape) != tuple(self.held.shape):
            given = placement_of(value)
            if self.sharding is not None and given is None:
                self._require_divisible(self.sharding, value.shape)
                given = self.sharding
            if given is None:
                return value
            self.sharding = given
            epoch.bump()
        return place(value, self.sharding)

    def _require_divisible(self, sharding: Placement, shape: tuple[int, ...]) -> None:
        """Raise if an array of another shape cannot be divided over devices as that of the cell is."""
        parts = parts_along(sharding)
        if len(parts) > len(shape) or any([size % count for size, (_, count) in zip(shape, parts, strict=False)]):
            raise ValueError(
                f"{self.path} is divided over devices by {sharding.spec}, which an array of shape {tuple(shape)} "
                "cannot be; place it first, with a specification that fits: jax.device_put(array, "
                f"NamedSharding(mesh, PartitionSpec())){at_line(user_line())}"
            )

    def move(self, array: Any) -> None:
        """Hold an array where it is, and keep it there from now on."""
        self.array = array
        self.sharding = placement_of(array)
        epoch.bump()

    def _check_held(self, value: Any) -> None:
        """Raise if the cell cannot hold an array of this type."""

    def require_kept(self, value: Any) -> None:
        """Raise if JAX traces a value, which would outlive the trace here: the cell was not made in the trace."""
        if is_jax_tracer(value) and not is_jax_tracer(self.held):
            raise TypeError(
                f"{self.path} would hold a value that JAX traces when the transformation of JAX is over. Call the "
                "model by nn.functional_call(model, state, x), which returns what it changes, or pass the model to the "
                f"transformed function and return it{at_line(user_line())}"
            )

    def _place_for_tensor(self, around: Filling | None, holding: Filling) -> Held:
        """The place for a tensor that forward code on tensors assigns: inside of what calls this code."""
        key = id(self)
        while around is not holding and around is not None:
            if key in around:
                return around[key]
            around = around.outer
        found = holding.get(key)
        if found is None:
            place = self.place()
            found = holding[key] = Held(self, place.held, place.home, type(place) is Held and place.is_given)
        return found

    def check_change(self) -> None:
        """Raise if the cell is about to be changed in a trace that it does not belong to.

        The new value would be lost, or would outlive the trace.

        Raises:
            RuntimeError: it is.
        """
        builder = current_builder()
        place = self.place()
        if place.home is builder:
            return
        if place.home is not None and not place.home.is_open:
            # The trace that it was made in is over.
            place.home = None
            if builder is None:
                return
        around = _filling()
        if around is None or around.taking is None or not around.taking.take(self):
            raise changed_inside_error(self)

    def _on_host(self, array: Any) -> Any:
        if type(array) is np.ndarray or isinstance(array, Eager) or is_jax_tracer(array) or not is_jax(array):
            return array
        if not is_readable(array):
            raise divided_error(self)
        try:
            if not array.is_deleted():
                return np.asarray(array)
        except RuntimeError:
            if not array.is_deleted():
                raise
        # A compiled step of another thread may be about to put in what it has made of it.
        locks = () if self.transaction is None else (self.transaction,)
        now = in_turn(locks, lambda: self.array)
        if now is array:
            raise deleted_error(self.path)
        return self._on_host(now)

    def to(self, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Convert the array to another dtype, in place; in forward code the array in another dtype, as of tensors.

        Raises:
            TypeError: the array is complex and the dtype is real; or `dtype` is not a dtype.
        """
        if speaking.get():
            return in_forward(METHODS["to"](self.read(), read(dtype), *read(args), **read(kwargs)))
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            raise TypeError(
                f"{self.path}.to takes a dtype, not {dtype!r}; model.to(device) moves a whole model to a device"
                + at_line(user_line())
            ) from None
        if is_complex(self.dtype) and not is_complex(dtype):
            raise TypeError(
                f"{self.path} is {self.type}, whose imaginary parts {dtype} cannot represent; assign .value.real "
                f"if that is intended{at_line(user_line())}"
            )
        self.value = self.value.astype(dtype)
        return self

    @property
    def data(self) -> Any:
        """The array without derivative; outside of transformations a tensor that shares its memory with the cell.

        Assigning replaces it.
        """
        array = self.array
        if type(array) is Tracer:
            return stop_gradient(array)
        if isinstance(array, Eager):
            return array.detach()  # type: ignore[attr-defined]
        if current_builder() is not None:
            return self.value
        if not (is_plain(array, np.ndarray) and array.flags.writeable):
            self.array = np.array(self.value)
        return self._shared()

    @data.setter
    def data(self, value: Any) -> None:
        self.value = value

    def _shared(self) -> Tensor:
        """A tensor that shares memory with the cell."""
        return sharing(self.array)

    def numpy(self, gather: bool = False) -> np.ndarray[Any, Any]:
        """The array, as a NumPy array.

        Args:
            gather: whether to collect the parts of an array that is divided over processes, all of which must call
                this then.

        Raises:
            RuntimeError: the array is divided over processes, and is not to be collected.
        """
        return gathered(self.array) if gather else np.asarray(self.value)

    def read(self) -> Any:
        around = _filling()
        found = None if around is None else around.find(id(self))
        if found is None:
            note_other_read(self)
            array = self.held
        else:
            found.is_read = True
            array = found.held
        if type(array) is Tracer or isinstance(array, Eager):
            return array
        if found is not None and found.is_given:
            return self._on_host(array)
        builder = current_builder()
        if builder is not None and is_compiling() and not self._is_made_here():
            raise not_given_error(self)
        if reading.get() == "arrays":
            return self._on_host(array)
        if builder is not None and reading.get() == "traced" and self._is_trained():
            # Whether what is computed from it is recorded depends on what else the program is given.
            return Tracer(builder, builder.atom(self))
        return self.recorded()

    def _is_made_here(self) -> bool:
        """Whether a trace that still runs has made the cell, which is no constant from outside then."""
        return self.home is not None and self.home.is_open

    def _is_trained(self) -> bool:
        return False

    def concrete(self) -> Any:
        return self.value

    def recorded(self) -> Any:
        return self.value

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        array = self.array
        if not is_readable(array):
            return f"{type(self).__name__}({self.type}, divided over the processes by {array.sharding.spec})"
        is_traced = type(array) is Tracer or is_jax_tracer(array)
        shown = repr(array) if is_traced else np.array2string(np.asarray(self.value), separator=", ")
        return f"{type(self).__name__}({shown}, {array.dtype})"

    def twin(self) -> Any:
        """A new cell that holds the same array."""
        new = self.__class__.__new__(self.__class__)
        new.held, new.home = self.array, current_builder()
        new.name, new.owner, new.sharding, new.transaction = self.name, None, None, None
        return new

    # Copies hold an array of their own.

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        new = self.__class__.__new__(self.__class__)
        memo[id(self)] = new
        new.__setstate__(self.__getstate__())
        return new

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __getstate__(self) -> dict[str, Any]:
        if type(self.array) is Tracer:
            raise TypeError(f"{self.path} cannot be copied or pickled while it is traced{at_line(user_line())}")
        if is_jax_tracer(self.array):
            array = self.array
        else:
            array = copied(self.array, self.dtype) if self.sharding is not None else np.array(self.value)
        return {"array": array, "name": self.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ArrayCell.__init__(self, state["array"])
        self.name = state["name"]

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = self.__getstate__()
        return _empty, (self.__class__,), {**state, "array": np.asarray(state["array"])}


def _empty(cls: type[ArrayCell]) -> ArrayCell:
    return cls.__new__(cls)


def _held(value: Any) -> Any:
    """A value as a cell holds it."""
    value = read(value)
    if isinstance(value, Eager):
        return np.array(value.concrete())
    if isinstance(value, Tracer) or is_jax(value):
        return value
    refuse_lookalike(value)
    array = np.asarray(value)
    try:
        type_of(array)
    except TypeError as error:
        raise TypeError(f"a cell holds an array of numbers, not {type(value).__name__}: {error}") from None
    return array


def not_given_error(cell: ArrayCell) -> RuntimeError:
    """The error for a cell that a compiled function reads without having been given its module."""
    return RuntimeError(
        f"the compiled function reads {cell.path}, whose module is not among its arguments: it would be a constant, "
        "and later changes would not be seen; pass the module to the function, nn.jit(f)(model, ...), or make it an "
        f"attribute of a model that is passed{at_line(user_line())}"
    )


def changed_inside_error(cell: ArrayCell) -> RuntimeError:
    """The error for a cell that is changed in a trace that it does not belong to."""
    if cell.place().home is None:
        where = "that is being traced, and its module is no argument of the transformation"
    else:
        where = "that is traced on its own, inside of the transformation that its module was given to"
    return RuntimeError(
        f"{cell.path} is changed in a function {where}, so the new value would be lost. Pass the module to nn.grad, "
        "nn.value_and_grad, nn.jit, nn.vmap, nn.scan or nn.checkpoint, which write changes back (in place of ft.grad, "
        f"ft.vmap, ft.scan ...); or {cell._instead_of_changing}; or call eval() where it need not change"
        + at_line(user_line())
    )


def divided_error(cell: ArrayCell) -> RuntimeError:
    """The error for an array whose parts are in other processes, too."""
    return RuntimeError(
        f"{cell.path} is divided over the processes by {cell.array.sharding.spec}, so none of them can read it alone; "
        "cell.numpy(gather=True) and model.state_dict(gather=True) collect the parts, if all processes call them"
        + at_line(user_line())
    )


def deleted_error(path: str) -> RuntimeError:
    """The error for an array that is used after it was donated."""
    return RuntimeError(
        f"the array of {path} was donated to a compiled function, which has overwritten it; take a copy before the "
        f"call (model.state_dict() makes one), or compile without donate_argnums{at_line(user_line())}"
    )
