"""The functions of `scipy.stats` that have no traced form, each with the reason and what to write instead."""

from __future__ import annotations

import scipy.stats

from ...numpy.dispatch import refused

_RANKS = "it depends only on the order of the numbers, so its derivative is zero; call it outside the traced function"
_DRAWN = (
    "it calls a function with samples that it draws; draw indices beforehand, as in rng.integers(n, size=(times, n)), "
    "and compute the statistic of x[indices]"
)
_SHAPE = "the number of its results depends on values; sort the sample, or use a weighted sum"
_TRANSFORMED = (
    "it searches for its parameter; use the transformation for a given parameter, such as scipy.special.boxcox, and "
    "ftrans.argmin of its likelihood, such as boxcox_llf"
)

REASONS = {
    **dict.fromkeys(
        ("ansari", "fligner", "friedmanchisquare", "kendalltau", "kruskal", "mannwhitneyu", "mood", "rankdata",
         "somersd", "spearmanr", "weightedtau", "wilcoxon"),
        _RANKS,
    ),
    **dict.fromkeys(("bootstrap", "monte_carlo_test", "permutation_test"), _DRAWN),
    **dict.fromkeys(("mode", "sigmaclip"), _SHAPE),
    **dict.fromkeys(("boxcox", "boxcox_normmax", "yeojohnson", "yeojohnson_normmax"), _TRANSFORMED),
    "binned_statistic": "use np.bincount(np.digitize(x, edges), weights=values), divided by the same without weights",
    "percentileofscore": "it counts numbers, so its derivative is zero; use the cdf of a distribution",
    "scoreatpercentile": "use np.percentile",
}  # fmt: skip

FUNCTIONS = {
    name: refused(getattr(scipy.stats, name), f"scipy.stats.{name}", why)
    for name, why in REASONS.items()
    if hasattr(scipy.stats, name)
}
