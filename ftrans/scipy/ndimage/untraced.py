"""The functions of `scipy.ndimage` that have no traced form, each with the reason and what to write instead."""

from __future__ import annotations

import scipy.ndimage

from ..entries import refused_functions

_BINARY = "it computes with booleans or integers, so it has no derivative; call it on plain values"
_GREY = "use maximum_filter and minimum_filter, of which it consists"
_LABELS = "use numpy.bincount with weights=, or numpy.add.at, with plain labels"
_CALLS = "it calls a function for each element; use map_coordinates, or shifted slices of the array"
_FOURIER = "multiply the transform by the filter's own transform with numpy.exp, or filter the image"

FUNCTIONS = refused_functions(
    scipy.ndimage,
    {
        "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss binary_opening": _BINARY,
        "binary_propagation distance_transform_bf distance_transform_cdt distance_transform_edt find_objects": _BINARY,
        "label value_indices watershed_ift histogram maximum_position minimum_position iterate_structure": _BINARY,
        "grey_closing grey_dilation grey_erosion grey_opening morphological_gradient morphological_laplace": _GREY,
        "black_tophat white_tophat": _GREY,
        "sum sum_labels mean variance standard_deviation median maximum minimum extrema labeled_comprehension": _LABELS,
        "center_of_mass": "use the sums of the array times each of its numpy.indices, divided by the array's sum",
        "generic_filter generic_filter1d vectorized_filter geometric_transform": _CALLS,
        "fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform": _FOURIER,
    },
)
