"""Placement: the mesh that a training runs on, and where its batches are.

The model, the state of the optimizer and what the steps add up stay on the mesh.  A batch is divided along its samples.
One whose samples cannot be divided evenly is filled up with some of them again, which a mask leaves out of the means,
or it is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...base import tree
from ...base.source import at_line, user_line
from ...xla import is_across, parts_here, place, place_local, placement
from ..devices.placing import mesh_of, require_mesh, shard
from ..devices.sharding_rules import as_entries, as_rules, divisible, size_of_axes
from ..layers.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ..modules.module import Module
from .data import PlacedBatch, leaves_of, samples_in
from .measures import Measure
from .steps import MeansCheck

UNEVEN = ("pad", "drop")


class Placement:
    """Where a training runs.

    Args:
        mesh: the mesh.
        spec: how arrays of a batch are divided: for each of their axes, the axes of the mesh.
        uneven: "pad" or "drop", what becomes of a batch whose samples cannot be divided evenly.

    Attributes:
        masks: whether steps take a mask of the samples.
    """

    def __init__(self, mesh: Any, spec: tuple[Any, ...], uneven: str, measure: Measure) -> None:
        self.mesh = mesh
        self._spec = spec
        self._measure = measure
        self._drops = uneven == "drop"
        parts = size_of_axes(mesh, spec[0], "batch_spec") if spec else 1
        # Those on devices of this process, which gives the samples for them.
        self._parts = parts_here(parts, placement(mesh, spec[:1]))
        self._processes = parts // self._parts
        self.masks = not self._drops and parts > 1 and measure.has_output
        # Samples in the largest batch so far, filled up: smaller ones are filled up to that, so that one compiled step
        # serves all.
        self._size = 0
        self._require_means = MeansCheck(measure)

    def replicate(self, module: Module) -> None:
        """Put cells of a module that are nowhere yet on every device."""
        for _, cell in module.named_cells():
            if cell.sharding is None:
                cell.move(place(cell.array, placement(self.mesh, ())))

    def batches(self, batches: Iterable[Any], model: Module) -> Iterator[Any]:
        """Batches on the mesh.

        Raises:
            ValueError: a batch cannot be divided.
        """
        is_checked = False
        for batch in batches:
            count = samples_in(batch)
            is_global = any(map(is_across, leaves_of(batch)))
            parts = self._parts * (self._processes if is_global else 1)
            if count % parts and self._drops:
                continue
            size = self._size_for(count) if self.masks and not is_global else count
            if size % parts:
                raise self._not_divisible(count, parts, is_global)
            if size != count:
                self._require_no_statistics(model, count, size)
            found = self._placed(batch, count, size, is_global)
            if size != count and not is_checked:
                is_checked = True
                self._require_means(model, found.arrays)
            yield found

    def require_shares(self, shares: int | None) -> None:
        """Raise if `nn.batches` makes other parts of its batches than the mesh has of them.

        Args:
            shares: the number of parts of each batch; None if it is not known.
        """
        if shares not in (None, 1, self._processes):
            raise ValueError(
                f"nn.batches gives each process one of {shares} parts of a batch, but the mesh divides batches over "
                f"{self._processes} groups of processes; write nn.batches(..., shard=(index, {self._processes})), "
                f"where index is the group of this process, or another mesh or batch_spec{at_line(user_line())}"
            )

    def _size_for(self, count: int) -> int:
        """The number of samples that a batch of so many is filled up to."""
        self._size = max(self._size, -(-count // self._parts) * self._parts)
        return self._size

    def _placed(self, batch: Any, count: int, size: int, is_global: bool) -> PlacedBatch:
        rows = np.arange(size) % count

        def put(x: Any) -> Any:
            is_of_samples = x.ndim > 0 and x.shape[0] == count
            spec = self._spec[: x.ndim] if is_of_samples else ()
            if size != count and is_of_samples:
                x = np.asarray(x)[rows]
            # Its samples have been looked at; in several processes, these are those of this one.
            divisible("an array of the batch", x, (None, *spec[1:]) if spec else (), self.mesh, "batch_spec")
            return put_on(x, placement(self.mesh, spec))

        put_on = place if is_global else place_local
        where = placement(self.mesh, self._spec[:1])
        mask = put_on(np.arange(size) < count, where) if self.masks else None
        arrays = tree.map_leaves(put, batch)
        rows_everywhere = samples_in(arrays)
        return PlacedBatch(arrays, mask, rows_everywhere * count // size)

    def _not_divisible(self, count: int, parts: int, is_global: bool) -> ValueError:
        why, instead = (
            (
                "its arrays, which are those of all processes, are not filled up",
                "arrays of NumPy, a part in each process",
            )
            if is_global
            else (
                "an objective, which may mean anything, cannot leave out samples that fill it up",
                "loss= in place of objective=",
            )
        )
        return ValueError(
            f"a batch has {count} samples, which the {parts} parts of the axis {self._spec[0]!r} of the mesh cannot "
            f"share evenly, and {why}; choose batches of a multiple of {parts}, or uneven='drop', or {instead}"
            + at_line(user_line())
        )

    def _require_no_statistics(self, model: Module, count: int, size: int) -> None:
        """Raise if a layer computes statistics of a batch, which samples that fill it up would change."""
        for path, module in model.named_modules():
            if isinstance(module, BatchNorm1d | BatchNorm2d | BatchNorm3d) and module.training:
                raise ValueError(
                    f"a batch has {count} samples, but {path or 'the model'} computes statistics of the whole batch, "
                    f"which samples that fill it up to {size} would change; write uneven='drop', or choose batches of "
                    f"a multiple of {self._parts}{at_line(user_line())}"
                )


def placement_for(
    model: Module, mesh: Any, rules: Any, batch_spec: Any, uneven: str, measure: Measure
) -> Placement | None:
    """The placement of a training, whose model is put there; None for one on no mesh.

    Raises:
        ValueError: arguments contradict each other.
    """
    if uneven not in UNEVEN:
        raise ValueError(f"uneven is {uneven!r}, but can be {' or '.join(map(repr, UNEVEN))}{at_line(user_line())}")
    known = mesh_of(cell for _, cell in model.named_cells())
    if mesh is None and known is None:
        given = [name for name, x in (("rules", rules), ("batch_spec", batch_spec)) if x is not None]
        if given:
            raise ValueError(
                f"{given[0]} says how arrays are divided over a mesh, which was not given; write "
                f"mesh=ft.mesh({{'data': 8}}){at_line(user_line())}"
            )
        return None
    mesh = known if mesh is None else require_mesh(mesh, "nn.fit")
    if known is None or rules is not None or known != mesh:
        shard(model, mesh, rules)
    spec = (_axis_of_batches(mesh, rules),) if batch_spec is None else as_entries(batch_spec, "batch_spec")
    found = Placement(mesh, spec, uneven, measure)
    found.replicate(model)
    return found


def _axis_of_batches(mesh: Any, rules: Any) -> Any:
    """The axis of the mesh that batches are divided over by default."""
    found = as_rules(rules)
    named = [rule.axis for rule in found if rule.divides_batches]
    taken = [rule.axis for rule in found if rule.axis is not None]
    free = [name for name in mesh.axis_names if name not in taken]
    return (named or free or [None])[0]
