"""Faults to plant in the library, and whether the tests find them: `make planted-faults`.

A fault is a piece of source and what stands in its place while the library is imported; no file is changed.  For each
the short suite has to fail, and where it does not, it is shown whether the long one does: what that alone finds is
missing in the short one.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Fault(NamedTuple):
    """A mistake.

    Attributes:
        name: what it is called.
        file: the file in ftrans/ that it is in.
        right: source that occurs once in the file.
        wrong: what is to stand there.
        tests: arguments of pytest for tests that should find it, which is quicker than to run all.
    """

    name: str
    file: str
    right: str
    wrong: str
    tests: str


RULES = "test_rules.py -k "
STRUCTURE = "test_structure.py -k "
TAYLOR = "test_taylor.py -k "
COLOURING = "test_colouring.py -k "
LAPLACIAN = "test_laplacian.py -k "
OPTIMIZE = "test_scipy_optimize.py -k "
COMPRESSED = "test_compressed.py -k "
MESH = "test_nn_mesh.py -k "
TRACES = "test_jax_traces.py -k "
FAULTS = [
    # Solvers of SciPy
    Fault("constraints without their multipliers", "scipy/optimize/constraints.py",
          "return np.sum(multipliers * f(x))", "return np.sum(f(x)) + 0 * np.sum(multipliers)",
          OPTIMIZE + "test_derivatives_of_constraints"),
    Fault("Jacobians that are not transposed for those who ask", "scipy/optimize/roots.py",
          "found(x).T", "found(x)", OPTIMIZE + "test_root"),
    Fault("products with the Hessian of an earlier point", "scipy/optimize/minimize.py",
          "last[0] is None or not np.array_equal(last[0], x)", "last[0] is None", OPTIMIZE + "test_sparse_hessians"),
    Fault("the derivative at the start for whatever is asked first", "scipy/supplied.py",
          "if all(map(np.array_equal, at, args)):", "if True:", OPTIMIZE + "test_derivatives_of_constraints"),
    Fault("gradients of an earlier point", "scipy/supplied.py",
          "self._last is None or not np.array_equal(self._last[0], x)", "self._last is None", OPTIMIZE + "by_hand"),
    Fault("Jacobians of data that were left out", "scipy/optimize/curve_fit.py",
          "if data is not self.data:", "if False:", OPTIMIZE + "missing_data"),
    Fault("differences that are asked for in words", "scipy/optimize/least_squares.py",
          "isinstance(jac, LeftOut) and diff_step is None", 'jac == "2-point" and diff_step is None',
          OPTIMIZE + "differences_that_are_asked_for"),
    Fault("changes of a function that was compiled", "scipy/supplied.py",
          "return not error > _SAME * max(self._scale, _largest(now))", "return True", OPTIMIZE + "that_change"),
    Fault("Jacobians at the nodes of a mesh the wrong way round", "scipy/integrate/with_jacobians.py",
          "tuple([b.swapaxes(1, 2) for b in blocks])", "tuple([b.T.swapaxes(0, 1) for b in blocks])",
          "test_scipy_integrate.py -k parameters"),
    Fault("a Lagrangian whose objective has no factor", "api/nlp.py",
          "np.float64(obj_factor))", "np.float64(1))", "test_nlp.py"),
    # Maps between elements
    Fault("slices of a row that run over its end", "base/affine.py",
          "if all(a >= 0 and b < n for a, b, n in zip(low, high, shape, strict=True)):",
          "if all(a >= 0 for a, b, n in zip(low, high, shape, strict=True)):", "test_index_map.py -k compose"),
    Fault("matches that carry over from one digit to the next", "base/affine.py",
          "if place and low + n > steps[place - 1] // step:", "if place and low > steps[place - 1] // step:",
          "test_index_map.py -k matches"),
    Fault("lanes of a reversed map in the wrong order", "base/affine.py",
          "first = low if r_a >= 0 else end - 1", "first = low", "test_index_map.py -k matches"),
    Fault("tables taken for the affine map that they begin like", "base/affine.py",
          "return found if last == numbers[-1] and np.array_equal(values(found), numbers) else None",
          "return found if last == numbers[-1] else None", "test_index_map.py -k found_in_tables"),
    Fault("values put at reversed lanes without turning them", "structure/graph/emission.py",
          "return reverse(x, axes=self.reversed) if self.reversed else x", "return x", "test_emission.py"),
    Fault("entries that fall on one place twice", "structure/elimination/assemble.py",
          "rest = None if beside is None else rest.at(beside)", "rest = rest", "test_assemble.py"),
    Fault("a cumulative sum of what comes after", "ops/reductions.py",
          "{(axis, axis): triangle(shape[axis], not reverse)}", "{(axis, axis): triangle(shape[axis])}",
          "test_local.py -k cumsum"),
    Fault("windows that begin after the padding", "ops/windows.py",
          "np.divmod(place * stride + inner * dilation - low, spacing)",
          "np.divmod(place * stride + inner * dilation, spacing)", "test_local.py -k window"),
    Fault("indices from the end", "ops/indexing.py",
          "places += np.clip(np.where(index < 0, index + n, index), 0, max(n - 1, 0)) * stride",
          "places += np.clip(index, 0, max(n - 1, 0)) * stride", "test_local.py -k gather"),
    Fault("one step of a loop too few", "structure/patterns/boolean.py",
          "reached = bounded(reached @ power, at_most) if steps % 2 else reached", "reached = reached",
          "test_local.py -k loops"),
    # Rewrites
    Fault("part of a part that begins in steps of one", "rewrites/moves.py",
          "start = tuple(a + s * b for", "start = tuple(a + b for", "test_rewrites.py -k part"),
    Fault("parts joined that only touch", "rewrites/moves.py",
          "and before.limit[axis] == after.start[axis]", "and before.limit[axis] <= after.start[axis]",
          "test_rewrites.py -k joined"),
    Fault("writes at indices taken for sums", "rewrites/moves.py",
          'if sum_of is None or not (params["unique"] or indices[0].shape == ()):', "if sum_of is None:",
          "test_rewrites.py -k repeated"),
    Fault("product of the inner axis of the wrong factor", "rewrites/products.py",
          "of_b = tuple(b_free[i - count] for i in contract[0])", "of_b = tuple(b_free[-1] for i in contract[0])",
          "test_rewrites.py -k product"),
    Fault("factor of a sum of products that is lost", "rewrites/products.py",
          "(a.times(f), b) if set(f.axes) <= set(a.axes)", "(a, b) if set(f.axes) <= set(a.axes)",
          "test_rewrites.py -k product"),
    Fault("free axes of a transposed factor in the order of the transpose", "rewrites/layouts.py",
          "sorted(free).index(a) for a in free", "free.index(a) for a in free", "test_layouts.py -k random"),
    Fault("sum over the axes that a transposed array has", "rewrites/layouts.py",
          'reduced = _source(x), tuple(sorted(axes[i] for i in params["axes"]))',
          'reduced = _source(x), params["axes"]', "test_layouts.py -k random"),
    Fault("a shift that matters held constant", "rewrites/shifts.py",
          "return None if found.weight == 0 else found", "return None", "test_rewrites.py -k shift"),
    Fault("a tie of two taken for one extremum", "control/extrema/by_index.py",
          "ne(count, full_like(count, 1))", "ne(count, count)", "test_extrema.py"),
    Fault("axes of what is read at an extremum", "control/extrema/by_index.py",
          "axes = sorted(r for r in roles if r >= 0)", "axes = [r for r in roles if r >= 0]", "test_extrema.py"),
    Fault("slope of a sum of exponentials that is not divided", "ops/logsumexp.py",
          "return mul(reduce_sum(mul(t, terms), axes=axes), scale)", "return reduce_sum(mul(t, terms), axes=axes)",
          RULES + "logsumexp"),
    Fault("small terms beside a large one lost", "ops/logsumexp.py",
          "return top + jnp.where(is_lossy, jnp.log1p(rest), jnp.log(total))", "return top + jnp.log(total)",
          "test_special_errors.py -k small_terms"),
    Fault("quarters of a turn of compiled cosines", "ops/elementwise/trigonometry.py",
          "return _turned(x, 1)", "return _turned(x, 3)", "test_trigonometry.py"),
    Fault("a call that is like one with other keys", "api/alike.py",
          "or len({name}) != {len(x)}: return None", ": return None", "test_alike.py"),
    # Patterns and elimination
    Fault("one path of several to the same elements", "structure/graph/graph.py",
          "value = total(other.value, value, rows.shape, k.type.dtype)", "value = other.value",
          STRUCTURE + "random_programs"),
    Fault("equations of two operands that are taken for linear ones", "structure/graph/graph.py",
          "if not set(active) <= set(linear) and _is_curved(eqn, active):",
          "if not set(active) <= set(linear) and len(active) == 1 and _is_curved(eqn, active):",
          STRUCTURE + "hessians_of_primitives"),
    Fault("results that other results depend on", "structure/elimination/eliminate.py",
          "            self._copy(k)\n", "            pass\n", STRUCTURE + "random_programs"),
    Fault("products of two elements of an array counted once", "structure/elimination/quadratic.py",
          "value = product(Masked(2.0), value)", "value = product(Masked(1.0), value)", STRUCTURE + "hessians"),
    Fault("mixed derivatives the wrong way round", "structure/elimination/quadratic.py",
          "return [Edge(e.cols, e.rows, e.value) for e in self.parts.get(k, {}).get(m, [])]",
          "return [Edge(e.rows, e.cols, e.value) for e in self.parts.get(k, {}).get(m, [])]",
          STRUCTURE + "hessians or random"),
    Fault("constants of a loop that move with its steps", "structure/elimination/holders.py",
          "np.where(np.array(moves), sizes, 0)[which]", "sizes[which]", STRUCTURE + "all_steps_share"),
    Fault("a carry that depends on the elements of a loop", "structure/elimination/holders.py",
          "reached.update(v for v in inner.outputs if is_inexact(v.type.dtype))", "pass", STRUCTURE + "primitives"),
    Fault("long loops that run backwards", "structure/patterns/loop_patterns.py",
          "    if reverse:\n", "    if False:\n", "test_local.py -k loops"),
    # Derivatives
    Fault("partial of a product", "ops/elementwise/family.py",
          "lambda z, x, y: [lambda t: mul(t, y), lambda t: mul(x, t)]",
          "lambda z, x, y: [lambda t: mul(t, y), lambda t: mul(y, t)]", RULES + "mul"),
    Fault("partial with a wrong sign", "ops/elementwise/functions.py",
          "lambda y, x, t: neg(mul(t, sin(x)))", "lambda y, x, t: mul(t, sin(x))", RULES + "cos"),
    Fault("partial with a wrong constant", "ops/elementwise/functions.py",
          "mul(t, mul(full_like(x, math.log(2)), y))", "mul(t, mul(full_like(x, math.log(10)), y))", RULES + "exp2"),
    Fault("partial of a special function", "ops/special/errors.py",
          'erfi = Special("erfi", lambda y, x: [lambda t: mul(t, times(_TWO_BY_ROOT_PI, exp(square(x))))])',
          'erfi = Special("erfi", lambda y, x: [lambda t: mul(t, times(_TWO_BY_ROOT_PI, exp(square(y))))])',
          RULES + "erfi"),
    Fault("sum of two derivatives along one direction", "structure/laplacian/rows.py",
          "return parts if are_unique(parts) else None", "return parts", LAPLACIAN + "second_derivatives"),
    Fault("product that sums two derivatives along one direction", "structure/laplacian/row_products.py",
          "parts=parts) if are_unique(parts) else None", "parts=parts)", LAPLACIAN + "second_derivatives"),
    Fault("derivatives where there are none", "structure/laplacian/rows.py",
          "return kept(part.value, part.place >= 0)", "return part.value", LAPLACIAN + "second_derivatives"),
    Fault("products of derivatives along different directions", "structure/laplacian/rows.py",
          "parts.append(Part(value, np.where(meet, p.place, -1)))", "parts.append(Part(value, p.place))",
          LAPLACIAN + "second_derivatives"),
    Fault("elements of a second array along the directions of the first", "structure/laplacian/laplacian.py",
          "start += direction.type.size", "start += 0", LAPLACIAN + "containers"),
    Fault("tangent of an unstable order", "ops/sorting.py",
          "return take_along(x, order, axis), take_along(t, order, axis)",
          "return take_along(x, order, axis), take_along(t, order, 0)", RULES + "sort"),
    Fault("tangent of a factorisation", "ops/linalg/factorisations.py",
          "return out, matmul(out, mul(middle, mul(weights, full_like(a, 0.5))))",
          "return out, matmul(out, mul(middle, weights))", RULES + "cholesky"),
    Fault("tangent of a determinant's phase", "ops/linalg/determinants.py",
          "[mul(sign, turn), real(change)]", "[turn, real(change)]", RULES + "slogdet"),
    Fault("tangent of an odd number of factors", "ops/reductions.py",
          "t = concatenate(t, t2, axis=out.ndim) if count % 2 else t",
          "t = concatenate(t, t, axis=out.ndim) if count % 2 else t", RULES + "reduce_prod"),
    # Colourings
    Fault("star around a vertex that comes late", "structure/colouring/colour.py",
          "                if twice[v] >> colours[w] & 1:", "                if False:", COLOURING + "stars"),
    Fault("star whose first leaf is forgotten", "structure/colouring/colour.py",
          "centres[first[w * count + mine]] |= 1 << colours[w]", "centres[v] |= 1 << colours[w]", COLOURING + "stars"),
    Fault("cycle of two colours", "structure/colouring/colour.py",
          "taken |= (root in met) << colour", "taken |= 0", COLOURING + "trees"),
    Fault("row without a product whose columns are alike", "structure/colouring/colour.py",
          "if is_neutral is not None and is_neutral[w]:", "if False:", COLOURING + "both_sides"),
    Fault("smallest degrees first", "structure/colouring/orders.py",
          "return found if takes_most else found[::-1]", "return found", COLOURING + "orders"),
    Fault("star read from its centre", "structure/colouring/compressed.py",
          "places = np.where(is_alone, colours[cols]", "places = np.where(~is_alone, colours[cols]",
          COMPRESSED + "hessians"),
    Fault("substitution that adds what it should take away", "structure/colouring/recovery.py",
          "1 - 2 * (levels % 2)", "1 + 0 * levels", COMPRESSED + "hessians"),
    Fault("substitution that ends early", "structure/colouring/compressed.py",
          "while (above >= 0).any():", "if (above >= 0).any():", COMPRESSED + "hessians"),
    Fault("missing entry that is taken for a rounding error", "api/sparse_check.py",
          "if size[j] > max(tolerance", "if size[j] > max(1e3", COMPRESSED + "misses"),
    # Taylor series
    Fault("quotient without its last term", "structure/taylor/products.py",
          "for j in range(1, k + 1) if (y := b[j])", "for j in range(1, k) if (y := b[j])", TAYLOR + "digits"),
    Fault("coefficient of a slope that is not divided by its order", "structure/taylor/taylor.py",
          "scaled(slope()[k - 1], 1 / k)", "slope()[k - 1]", TAYLOR + "digits"),
    Fault("choice that is forgotten", "structure/taylor/supports.py",
          "return Support((*near, Condition(condition.at(0), holds)), far)", "return Support(near, far)",
          TAYLOR + "edges"),
    Fault("choice that is mistaken for a value's", "structure/taylor/series.py",
          "if not k and not self.is_slope:", "if False:", TAYLOR + "edges"),
    Fault("coefficients of a loop in another order", "structure/taylor/taylor_holders.py",
          "order += [*range(first, first + count), *range(behind, behind + more)]",
          "order += [*range(behind, behind + more), *range(first, first + count)]", TAYLOR + "programs"),
    Fault("mixed derivatives counted once", "structure/taylor/bilaplacian.py",
          "[1 - (count - 1) / 3, 1 / 6]", "[1 - (count - 1) / 6, 1 / 12]", TAYLOR + "bilaplacian"),
    # Transposes
    Fault("transposed permutation", "ops/shapes.py",
          "return [transpose(ct, axes=tuple(axes.index(i) for i in range(len(axes))))]",
          "return [transpose(ct, axes=tuple(axes[i] for i in range(len(axes))))]", RULES + "transpose"),
    Fault("transposed cumulative sum", "ops/reductions.py",
          "return [cumsum(ct, axis=axis, reverse=not reverse)]", "return [cumsum(ct, axis=axis, reverse=True)]",
          RULES + "cumsum"),
    Fault("transposed recurrence", "ops/reductions.py",
          "later = _shifted(operands[0], axis, 0, not reverse)", "later = _shifted(operands[0], axis, 0, reverse)",
          RULES + "linear_recurrence"),
    Fault("transposed write to repeated places", "ops/indexing.py",
          "if not unique and math.prod(shape) > 1:", "if unique and math.prod(shape) > 1:", RULES + "scatter_set"),
    Fault("transposed Fourier transform", "ops/fft.py",
          "return [irfft(halved, axis=axis, n=n, norm=_SWAPPED[norm])]",
          "return [irfft(halved, axis=axis, n=n, norm=norm)]", RULES + "rfft"),
    Fault("transposed convolution with dilation", "ops/convolution.py",
          "                    lhs_dilation=lhs_dilation,\n                    rhs_dilation=strides,",
          "                    lhs_dilation=rhs_dilation,\n                    rhs_dilation=strides,",
          RULES + "convolution"),
    Fault("transposed triangular solve", "ops/linalg/equations.py",
          "triangular_solve(a, ct, lower=lower, transpose_a=not transpose_a, unit_diagonal=unit_diagonal)",
          "triangular_solve(a, ct, lower=lower, transpose_a=not transpose_a, unit_diagonal=False)",
          RULES + "triangular_solve"),
    Fault("a cotangent that replaces another", "transforms/transpose.py",
          "cotangents[atom] = ct if before is None else", "cotangents[atom] = ct if True else",
          "test_transforms.py"),
    Fault("a choice that lets an infinite factor through", "transforms/choices.py",
          "    if not _may_choose(primitives) and not any(", "    if True or not any(", "test_finite.py"),
    Fault("parts that are zero in front of an infinite factor", "transforms/choices.py",
          "    return singular_slope in primitives[first:]", "    return False", "test_finite.py"),
    # Batches
    Fault("batch axis of an index", "ops/reductions.py",
          "return self(operands[0], axis=axis + 1), True", "return self(operands[0], axis=axis), True",
          RULES + "argmax"),
    Fault("batch axis of reversed axes", "ops/shapes.py",
          "return reverse(operands[0], axes=tuple(a + 1 for a in axes)), True",
          "return reverse(operands[0], axes=axes), True", RULES + "reverse"),
    Fault("batch of indices behind other axes", "ops/indexing.py",
          "        return _batch_axis_from(out, axis), True", "        return _batch_axis_from(out, 0), True",
          RULES + "gather"),
    Fault("batch of kernels in groups", "ops/convolution.py",
          "out = self(x, _merged(kernel, 0), groups=size * groups, **params)",
          "out = self(x, _merged(kernel, 0), groups=size, **params)", RULES + "convolution"),
    Fault("batch of choices", "control/cond.py",
          "results = [lanewise_select(mine, y, z) for y, z", "results = [lanewise_select(mine, z, y) for y, z",
          RULES + "cond"),
    Fault("place of the mapped axis", "api/vmap.py",
          "values = [moveaxis(leaves[i], axes[i], 0) if axes[i] else leaves[i] for i in traced_leaves]",
          "values = [leaves[i] for i in traced_leaves]", "test_vmap.py"),
    # Types and shapes
    Fault("dtype of a transposed conversion", "ops/elementwise/conversions.py",
          "return [convert(ct, dtype=operands[0].dtype)]", "return [convert(ct, dtype=ct.dtype)]", RULES + "convert"),
    Fault("results in containers of others as constants", "numpy/promotion.py",
          "return asarray(np.asarray(x))", "return Tracer(here, here.atom(x))", "test_foreign_operands.py"),
    Fault("dtype of weak operands", "numpy/promotion.py",
          "return np.result_type(*(k if isinstance(k, np.dtype) else k(0) for k in kinds))",
          "return np.result_type(*(k if isinstance(k, np.dtype) else np.asarray(k(0)).dtype for k in kinds))",
          "test_functions.py test_numpy_face.py"),
    Fault("shape of a real signal", "ops/fft.py",
          "return ArrayType((*x.shape[:axis], n, *x.shape[axis + 1 :]), to_real(x.dtype))",
          "return ArrayType((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype)", RULES + "irfft"),
    # Simplification
    Fault("a factor of minus one that is dropped", "ops/elementwise/family.py",
          "            return neg(b)\n", "            return b\n", RULES + "mul"),
    Fault("a power of zero", "ops/elementwise/powers.py",
          "full_like(operands[0], 1) if n == 0 else None", "full_like(operands[0], 0) if n == 0 else None",
          RULES + "integer_pow"),
    Fault("the other branch of a constant choice", "ops/elementwise/logic.py",
          "return x if value else y", "return y if value else x", RULES + "select"),
    # Compiled programs
    Fault("lowering of a search", "ops/sorting.py",
          "return jnp.searchsorted(table, values, side=side)", 'return jnp.searchsorted(table, values, side="left")',
          RULES + "xla"),
    Fault("lowering of scattered sums", "ops/indexing.py",
          "return lax.dynamic_update_slice(x, row + lax.reshape(updates, sizes), starts)",
          "return lax.dynamic_update_slice(x, lax.reshape(updates, sizes), starts)", RULES + "xla"),
    Fault("lowering of a loop that runs backwards", "control/loops/scan.py",
          "ys = lax.scan(step, init, xs, length=length, reverse=reverse, unroll=unroll)",
          "ys = lax.scan(step, init, xs, length=length, reverse=False, unroll=unroll)", RULES + "xla"),
    Fault("lowering of a choice of two", "control/cond.py",
          "return list(lax.cond(index != 0, *reversed(functions), *arrays))",
          "return list(lax.cond(index != 0, *functions, *arrays))", "test_control_flow.py -k compiled"),
    Fault("lowering of tiled windows", "ops/windows.py",
          "parts, 0).sum(inner, dtype=x.dtype)", "parts, 0).max(inner)", RULES + "xla"),
    # Loops and rules of users
    Fault("tangents of what a loop begins with", "control/loops/while_loop.py",
          "            [*carry, *filled(carry_tangents, carry, active)],\n",
          "            [*carry, *filled([None] * len(carry), carry, active)],\n",
          "test_rules.py test_control_flow.py -k while"),
    Fault("a transposed loop that runs forwards", "control/loops/scan.py",
          "            length,\n            not reverse,\n            unroll,\n        )\n        of_fixed",
          "            length,\n            reverse,\n            unroll,\n        )\n        of_fixed",
          RULES + "scan"),
    Fault("a rule of the user that is not batched", "control/rules/custom_rule.py",
          "program=derived.program, rule=rule.batched(size, flags), outs=outs)",
          "program=derived.program, rule=rule, outs=outs)", "test_rules.py test_custom_rules.py -k custom or vmap"),
    Fault("a linear map of the user without its constants", "control/rules/linear_call.py",
          "            totals = [t if s is None else s if t is None else add(s, t) for s, t in zip(totals, terms, "
          "strict=True)]", "            totals = terms", RULES + "linear_call"),
    # Loops of Python
    Fault("a value of several steps ago that is of the last one", "control/rolling/loop.py",
          "return chain[column.lag - 1]", "return chain[0]", "test_rolling.py"),
    Fault("rows of a loop that runs backwards in the order of its steps", "control/rolling/loop.py",
          "row = last - step if self._backwards else step", "row = step", "test_rolling.py"),
    Fault("results of equal operations in another order than they are used in", "control/rolling/side_by_side.py",
          "self._places.get(a) == (i, first)", "self._places.get(a, (0, a))[1] is first", "test_side_by_side.py"),
    Fault("a place that moves by its first distance only", "control/rolling/loop.py",
          "offsets = column - first\n", "offsets = (column - first) // max(1, int(column[1]) - first)\n",
          "test_rolling.py"),
    Fault("a slice that is not moved into its array", "ops/moving_slices.py",
          "min(max(int(a), 0), whole - n)", "max(int(a), 0)", RULES + "dynamic"),
    Fault("a slice that is set and kept in its cotangent", "ops/moving_slices.py",
          "ct_x = self(ct, full_like(updates, 0), *starts) if isinstance(x, ArrayType) else None",
          "ct_x = ct if isinstance(x, ArrayType) else None", RULES + "dynamic_set"),
    # Memory, guards, running
    Fault("a write to an array that is read later", "run/memory.py",
          "if memory is not None and last_use[memory] <= index and not shares:",
          "if memory is not None and not shares:", "test_in_place_programs.py test_view_programs.py"),
    Fault("a view that is taken for a copy", "run/memory.py",
          "            owner[result] = owner[eqn.operands[0]]", "            owner[result] = result",
          "test_in_place_programs.py test_view_programs.py test_numpy_assignment.py"),
    Fault("a guard that always holds", "core/trace.py",
          "return bool(np.all(np.asarray(value) == np.asarray(self.expected)))", "return True",
          "test_jit.py test_python_control_flow.py"),
    # Tensors
    Fault("a change that goes unnoticed", "autograd/graph.py",
          "            if memory.look() != version:\n                raise self._changed(memory)\n        return kept",
          "            if memory.look() < version:\n                raise self._changed(memory)\n        return kept",
          "test_tensor_inplace.py"),
    Fault("a gradient added to an array of the user", "autograd/backward.py",
          "elif sums[place + 1] and type(total) is np.ndarray and total.ndim:",
          "elif type(total) is np.ndarray and total.ndim:",
          "test_tensor.py test_tensor_inplace.py test_nn_autograd.py"),
    Fault("a view that does not follow its base", "autograd/changes.py",
          "if x.memory is None or window.version == x.memory.version:", "if True:", "test_tensor_inplace.py"),
    # Layers
    Fault("a variance that is not unbiased", "nn/functional/normalization.py",
          "unbiased = variance * (count / (count - 1))", "unbiased = variance",
          "test_nn_functional.py test_nn_layers.py"),
    Fault("scale of what dropout keeps", "nn/functional/dropout.py",
          "return np.where(kept, x * (1 / (1 - p)), 0.0)", "return np.where(kept, x * (1 / p), 0.0)",
          "test_nn_functional.py test_nn_layers.py test_nn_random.py"),
    Fault("where a loss changes its form", "nn/functional/losses.py",
          "* (0.5 / beta), size - 0.5 * beta)", "* (0.5 / beta), size - 0.5)", "test_nn_losses.py"),
    Fault("cells that a compiled step leaves alone", "nn/transformations/jit.py",
          "        write_cells(call.graph.cells, note.places, outs[note.count :])\n", "", "test_nn_jit.py"),
    # Functions inside of JAX, and of JAX
    Fault("derivatives that JAX finds for itself", "run/jax_operation.py",
          "return list(_primitive().bind(*_varying_alike(arrays), program=program, linear=linear))",
          "return _lowered(*arrays, program=program, linear=linear)", TRACES + "derivatives_in_jax_are_ours"),
    Fault("cotangents of an operation of JAX in the wrong order", "run/jax_operation.py",
          "*[ct for ct, a in zip(cotangents, active, strict=True) if a]",
          "*[ct for ct, a in zip(cotangents, active, strict=True) if a][::-1]", TRACES + "several_arguments"),
    Fault("the axis that JAX maps", "run/jax_operation.py",
          "jax.numpy.moveaxis(x, d, 0)", "x", TRACES + "maps_another_axis"),
    Fault("a replicated argument whose cotangent is that of one device", "run/jax_operation.py",
          "x if own == axes else jax.lax.pcast", "x if True else jax.lax.pcast", TRACES + "sums_over_devices"),
    Fault("code of JAX in its default types", "control/rules/jax_code.py",
          "return jax.enable_x64(_has_64_bits(xs))", "return jax.enable_x64(True)",
          "test_from_jax.py -k types"),
    Fault("a result in a container that is taken for a constant", "numpy/promotion.py",
          "if type(x) is not np.ndarray and not isinstance(x, np.ndarray | Holder | Const) and not is_jax(x):",
          "if False:", "test_foreign_operands.py -k containers"),
    # Arrays on several devices
    Fault("a batch that each device gets whole", "ops/sharding.py",
          "PartitionSpec(PartitionSpec.UNCONSTRAINED, *spec)", "PartitionSpec(None, *spec)",
          "test_sharding.py -k stays_divided"),
    Fault("results that lose their Explicit axes", "xla/meshes.py",
          "        if self._explicit is None:\n            return list(results)\n", "        return list(results)\n",
          "test_sharding.py -k explicit_axes_come_back"),
    Fault("guards that are divided over devices", "xla/compiled.py",
          "if mesh is not None and self._guards:", "if False:", "test_sharding.py -k branches"),
    Fault("numbers of the second words drawn from the first places", "ops/random_bits.py",
          "lax.select(is_second, second, first)", "lax.select(is_second, first, second)",
          "test_sharding.py -k random_numbers"),
    Fault("a precision that products do not obey", "ops/platforms.py",
          "return None if is_set and dtype in (np.float32, np.complex64) else", "return", "test_precision.py"),
    Fault("a precision that compiled programs are not asked for", "api/jitted.py",
          "return current_mesh(), product_dtype()", "return current_mesh(), None",
          "test_nn_autocast.py -k a_compiled_function"),
    Fault("parts of a parameter in the order of their names", "nn/pretrained/weights.py",
          "parts = [found[target][1] for target in sorted(found)]", "parts = [x for _, x in found.values()]",
          "test_nn_weights.py -k there_and_back"),
    Fault("a token that follows the prompt one place late", "nn/pretrained/generation.py",
          "fnp.where(place < length, tokens[:, place], drawn)", "fnp.where(place <= length, tokens[:, place], drawn)",
          "test_nn_generate.py -k greedy"),
    # Programs as text
    Fault("types of results that nobody compares", "storage/reader.py",
          'require(found == declared, f"the results', 'require(True, f"the results', "test_program_json.py"),
    # Models on a mesh
    Fault("cells that a step moves", "nn/transformations/jit.py",
          "*(graph.cells[i].sharding for i in note.places)", "*(None for i in note.places)",
          MESH + "stays_where_it_is"),
    Fault("the state of an optimizer whole on one device", "nn/optim/optimizer.py",
          "placement_beside(trained)", "None", MESH + "state_of_an_optimizer"),
    Fault("samples that fill up a batch and count", "nn/training/measures.py",
          "np.where(mask, x, 0).sum() / mask.astype(x.dtype).sum()", "x.mean()", MESH + "filled_up"),
    Fault("sums of steps that are on no mesh", "nn/training/loop.py",
          "placement.replicate(self.averages.meters)", "pass", MESH + "losses_are_those"),
    Fault("devices that a folder is read to", "nn/training/folders.py",
          "if like is None or like.sharding is None or", "if True or like is None or like.sharding is None or",
          "test_nn_sharded_checkpoints.py -k read_to_where"),
    Fault("the older of two checkpoints", "nn/training/checkpoints.py",
          "return max(complete, key", "return min(complete, key", "test_nn_sharded_checkpoints.py -k newest"),
    Fault("checksums that nobody compares", "xla/on_disk.py",
          "not in (None, self._sums[path.name])", "not in (None, _sum_of(path))", "test_cache_dir.py -k damaged"),
    # Solvers
    Fault("a weight of the ODE solver", "solvers/runge_kutta.py",
          "125 / 192, -2187 / 6784, 11 / 84)", "125 / 192, -2187 / 6748, 11 / 84)", "test_odeint.py"),
]  # fmt: skip


class _Planter(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from other source than its file's."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.path = ROOT / "ftrans" / fault.file
        self.module = ".".join(("ftrans", *Path(fault.file).with_suffix("").parts))

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code(), vars(module))

    def code(self) -> CodeType:
        """The module with the fault."""
        source = self.path.read_text()
        if source.count(self.fault.right) != 1:
            raise LookupError(f"{self.fault.name}: its source does not stand once in ftrans/{self.fault.file} any more")
        return compile(source.replace(self.fault.right, self.fault.wrong), self.path, "exec", dont_inherit=True)


def check(fault: Fault) -> None:
    """Raise an error if a fault cannot be planted, because the source has changed."""
    _Planter(fault).code()


def plant(name: str) -> None:
    """Import the library with the fault of this name from now on."""
    (fault,) = (f for f in FAULTS if f.name == name)
    sys.meta_path.insert(0, _Planter(fault))


def found_by(fault: Fault, *options: str) -> str | None:
    """The first of its tests that fails with a fault; None if all pass."""
    files, _, chosen = fault.tests.partition(" -k ")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--fault", fault.name, *options]
    command += [f"tests/{file}" for file in shlex.split(files)] + (["-k", chosen] if chosen else [])
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return None
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not failed:
        raise RuntimeError(f"{shlex.join(command)} ended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return failed[0]


def main(names: Sequence[str]) -> int:
    """Plant the faults of these names, or all; return how many only the long suite finds."""
    missed = 0
    for fault in FAULTS:
        if names and fault.name not in names:
            continue
        check(fault)
        start = time.perf_counter()
        found = found_by(fault)
        if found is None:
            found = found_by(fault, "--all")
            missed += found is not None
            found = "found by neither suite" if found is None else f"FOUND BY THE LONG SUITE ONLY: {found}"
        seconds = time.perf_counter() - start
        print(f"{fault.name} (ftrans/{fault.file}), {seconds:.0f} s\n    {found[:110]}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
