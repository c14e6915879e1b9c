"""Compiled: a program as XLA compiles it, and what that costs."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base.interrupts import uninterrupted
from ..base.observe import activity, current_observer
from ..base.progress import shows_progress, working
from ..base.surroundings import NeedsHost, divided, exporting
from ..core.program import Eqn, Program
from .execute import about_to_run, all_to_numpy, lower, process, to_numpy, without_copy
from .fusion import (
    can_keep_barriers,
    has_kept_values,
    may_have_barriers,
    most_repeated,
    options_with_barriers,
    repeating_at_most,
)
from .kinds import is_jax_tracer, seen_anew
from .meshes import (
    ExplicitAxes,
    Relabelled,
    is_on_several_devices,
    mesh_of,
    other_devices,
    other_division,
    replicated,
    require_auto_axes,
)
from .on_disk import disk_cache
from .processes import is_across, run_together
from .starting import start
from .traces import is_in_trace, outside_of_traces

# Results of fewer bytes are copied sooner than the pages of new ones are found.
_LARGE = 1 << 19


class Costs(NamedTuple):
    """What XLA says that a compiled program costs; zero where it does not say.

    It counts the body of a loop once, and what routines of libraries (such as LAPACK's) do not at all.

    Attributes:
        flops: floating-point operations.
        nbytes: bytes read and written.
        temporary_nbytes: bytes of memory beside arguments and results.
    """

    flops: float
    nbytes: float
    temporary_nbytes: float

    @classmethod
    def of(cls, compiled: Any) -> Costs:
        """The costs of JAX's `Compiled` object."""
        found, memory = compiled.cost_analysis() or {}, compiled.memory_analysis()
        return cls(
            found.get("flops", 0.0) + found.get("transcendentals", 0.0),
            found.get("bytes accessed", 0.0),
            getattr(memory, "temp_size_in_bytes", 0),
        )


class Division(NamedTuple):
    """How a compiled program's arrays are divided over devices: a sharding of JAX for each, or None to leave it to XLA.

    Attributes:
        inputs: of the inputs; None for the sharding of the arguments.
        results: of the results; None to leave all to XLA.
    """

    inputs: Sequence[Any] | None = None
    results: Sequence[Any] | None = None

    def shardings(self) -> list[Any]:
        """All shardings that are given."""
        return [x for x in (*(self.inputs or ()), *(self.results or ())) if x is not None]

    def mesh(self) -> Any:
        """The mesh of one of them; None if there is none."""
        return next((x.mesh for x in self.shardings() if hasattr(x, "mesh")), None)

    def options(self, inputs: int, results: int) -> dict[str, Any]:
        """The arguments of `jax.jit` that say so, for so many inputs and results: of the last ones nothing is said."""

        def filled(given: Sequence[Any] | None, count: int) -> list[Any] | None:
            return None if given is None or not any(given) else [*given, *[None] * (count - len(given))]

        wanted, pinned = filled(self.inputs, inputs), filled(self.results, results)
        return {
            **({"in_shardings": tuple(wanted)} if wanted else {}),
            **({"out_shardings": pinned} if pinned else {}),
        }


class OtherTypes(Exception):
    """A compiled program was called with arrays that are not of the types of its inputs."""


class Compiled:
    """A program compiled by XLA.

    Args:
        program: what to compile.
        donated: which inputs XLA may overwrite.
        limit: the most work that fusion on a CPU may repeat for an element (see `fusion.kept_values`); None for no
            limit.  Inside of another program that is compiled, the limit of that one holds.
        division: how inputs and results are divided over devices.
        guards: how many of the last results are to be whole on each device, whatever they are computed from.

    Attributes:
        limit: the limit that it was given.
        costs: what XLA says that it costs, once an observer has looked on.
    """

    costs: Costs | None = None

    def __init__(
        self,
        program: Program,
        donated: tuple[int, ...] = (),
        limit: float | None = None,
        division: Division | None = None,
        guards: int = 0,
    ) -> None:
        start()
        import jax

        self.program = program
        self.limit = limit
        self._donated = donated
        self._division = division or Division()
        self._guards = guards
        self._meets_explicit_axes = False
        self._is_divided = False
        self._jax: Any = jax
        self._has_run = False
        # The program as a part of others, by their limits.
        self._parts: dict[float | None, Any] = {}
        self._shared: set[int] = set()

    def _jitted(self, limit: float | None, options: dict[str, str] | None = None) -> Any:
        program = self.program

        def function(*args: Any) -> list[Any]:
            if [(x.shape, x.dtype) for x in args] != [(t.shape, t.dtype) for t in program.in_types]:
                raise OtherTypes
            require_auto_axes(args)
            mesh = mesh_of(args) or self._division.mesh()
            self._is_divided = self._is_divided or mesh is not None
            with repeating_at_most(limit), divided(mesh is not None):
                outs = lower(program, args)
            if mesh is not None and self._guards:
                outs = [*outs[: -self._guards], *replicated(outs[-self._guards :], mesh)]
            self._note_shared(args, outs)
            return outs

        function.__name__ = function.__qualname__ = "".join(c if c.isalnum() else "_" for c in program.name)
        shardings = self._division.options(len(program.inputs), len(program.outputs))
        return self._jax.jit(function, donate_argnums=self._donated, compiler_options=options, **shardings)

    def _note_shared(self, args: Sequence[Any], outs: Sequence[Any]) -> None:
        """Note which results are arguments, constants, or one another, so that others may hold them, too."""
        held = Counter([*map(id, args), *map(id, outs)])
        self._shared.update([i for i, x in enumerate(outs) if held[id(x)] > 1 or not is_jax_tracer(x)])

    @functools.cached_property
    def _repeats(self) -> bool:
        # Loops with a bar of their own need not be told of.
        return next(self.program.repeating(), None) is not None and not self.program.endings()

    @functools.cached_property
    def _large(self) -> frozenset[int]:
        """Large results in memory of their own."""
        types = self.program.out_types
        return frozenset([i for i, t in enumerate(types) if t.nbytes >= _LARGE and i not in self._shared])

    def on_host(self, outs: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The first results of a call as NumPy arrays that can be written to; large ones are not copied.

        Args:
            outs: what the call returned, or the first of it.
            args: its arguments.
        """
        if self._repeats and shows_progress():
            # XLA computes on, and what is asked for here is waited for.
            with working(self.program.running):
                for x in outs:
                    x.block_until_ready()
        if not self._large:
            return all_to_numpy(outs)
        return [without_copy(x, args) if i in self._large else to_numpy(x) for i, x in enumerate(outs)]

    @functools.cached_property
    def _plain(self) -> Any:
        """The function without barriers."""
        return self._part(None)

    @functools.cached_property
    def _fenced(self) -> Any:
        """The function with barriers, which stay; None if it has none, or can have none."""
        if self.limit is None or not has_kept_values(self.program, self.limit) or not can_keep_barriers():
            return None
        if may_have_barriers(self.program) and "optimization_barrier" in self._plain.lower(*self._types()).as_text():
            return None
        return self._jitted(self.limit, options_with_barriers(self.program))

    def _types(self) -> list[Any]:
        return [self._jax.ShapeDtypeStruct(t.shape, t.dtype) for t in self.program.in_types]

    def _part(self, limit: float | None) -> Any:
        found = self._parts.get(limit)
        return self._parts.setdefault(limit, self._jitted(limit)) if found is None else found

    @property
    def has_barriers(self) -> bool:
        """Whether it has barriers when it is called from here."""
        return self._fenced is not None

    @property
    def function(self) -> Any:
        """The function of JAX arrays that JAX compiles for a call from here."""
        if self._fenced is not None and not is_in_trace():
            return self._fenced
        limit = most_repeated()
        return self._plain if limit is None else self._part(limit)

    def __call__(self, *args: Any) -> Any:
        """Run on NumPy or JAX arrays; results are JAX arrays.  What JAX traces becomes a part of its trace.

        Raises:
            OtherTypes: the arrays are not of the types of the program's inputs.
        """
        if (
            not self._has_run
            or process.is_special
            or current_observer() is not None
            or self._meets_explicit_axes
            or is_in_trace()
        ):
            return self._run_with_care(args)
        # JAX runs what it has compiled, and hardly any Python, so an interrupt can only leave 64-bit types on.
        function = self._plain if self._fenced is None and most_repeated() is None else self.function
        if self._is_divided:
            args = (*seen_anew(args),)
        try:
            if self._jax.config.jax_enable_x64:
                return function(*args)
            try:
                with self._jax.enable_x64(True):
                    return function(*args)
            except BaseException:
                if self._jax.config.jax_enable_x64:
                    self._jax.enable_x64(False).__enter__()
                raise
        except ExplicitAxes:
            return self._run_with_care(args)
        except ValueError:
            self._explain(args)
            raise

    def _run_with_care(self, args: Sequence[Any]) -> Any:
        """The same where JAX has yet to trace, others look on or take part, or arrays have Explicit axes."""
        about_to_run()
        if any(map(is_jax_tracer, args)):
            return self._run(args)
        with outside_of_traces():
            return self._run_outside_of_traces(args)

    def _run_outside_of_traces(self, args: Sequence[Any]) -> Any:
        try:
            if not self._meets_explicit_axes:
                return self._run(args)
        except ExplicitAxes:
            self._meets_explicit_axes = True
        except ValueError:
            self._explain(args)
            raise
        given = Relabelled(args)
        with given.context:
            return given.back(self._run(given.arrays))

    def _explain(self, args: Sequence[Any]) -> None:
        """Raise the error for arrays that are in different places, if they are, in place of JAX's."""
        wanted = self._division.inputs
        explained = (other_division(args, wanted) if wanted else None) or other_devices(args)
        if explained is not None:
            raise explained from None

    def _run(self, args: Sequence[Any]) -> Any:
        if self._has_run or is_in_trace():
            return self._run_once(args)
        with working(self._said):
            return self._run_once(args)

    def _said(self) -> str:
        """What compiling it is called."""
        return f"compiling {self.program.name}, {len(self.program.eqns):,} equations"

    @uninterrupted
    def _run_once(self, args: Sequence[Any]) -> Any:
        args = seen_anew(args)
        with self._jax.enable_x64(True):
            if process.is_one_of_several and any(map(is_across, [*args, *self._division.shardings()])):
                outs = run_together(self.function, self.program, args, not self._has_run)
            elif current_observer() is None or any(map(is_jax_tracer, args)):
                outs = self.function(*args)
            else:
                outs = self._observed(args)
        self._is_divided = self._is_divided or any(map(is_on_several_devices, outs))
        self._has_run = True
        disk_cache.add_new()
        return outs

    def _observed(self, args: Sequence[Any]) -> Any:
        import jax

        if self.costs is None:
            # Where it has been compiled already, this is a look-up.
            with activity("compiling", "tracing by JAX", self):
                traced = self.function.trace(*args)
            with activity("compiling", "lowering", self):
                lowered = traced.lower()
            with activity("compiling", "XLA", self):
                compiled = lowered.compile()
            self.costs = Costs.of(compiled)
        with activity("compiled call", "", self):
            return jax.block_until_ready(self.function(*args))

    @uninterrupted
    def measure(self, *args: Any) -> Costs:
        """Compile, without running, and say what it costs; for arrays that are divided over devices, each of these."""
        about_to_run()
        given = Relabelled(args or self._types())
        with given.context, self._jax.enable_x64(True), working(self._said):
            return Costs.of(self.function.lower(*given.arrays).compile())

    @uninterrupted
    def first_on_host(self) -> Eqn | None:
        """The first equation that calls Python code on the host when the program runs; None if there is none."""
        about_to_run()
        with self._jax.enable_x64(True), exporting(("cpu",)):
            try:
                self._jax.eval_shape(lambda *xs: lower(self.program, xs), *self._types())
            except NeedsHost as error:
                found: Eqn = error.eqn
                return found
        return None

    @uninterrupted
    def lower(self, *args: Any) -> Any:
        """JAX's `Lowered` object of this program, for looking at or measuring what XLA is given."""
        about_to_run()
        given = Relabelled(args)
        with given.context, self._jax.enable_x64(True):
            return self.function.lower(*given.arrays)
