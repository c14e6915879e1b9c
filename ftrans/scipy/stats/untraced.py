"""The functions of `scipy.stats` that have no traced form, each with the reason and what to write instead."""

from __future__ import annotations

import scipy.stats

from ...numpy.dispatch import refused

_RANKS = (
    "it depends on the order of the numbers alone, so its derivative is zero; ask before the traced function is called"
)
_DRAWN = (
    "it calls a function with samples that it draws; draw indices beforehand, as in rng.integers(n, size=(times, n)), "
    "and take the statistic of x[indices]"
)
_SHAPE = "the number of its results depends on values; sort the sample, or weigh numbers by where they are"
_TRANSFORMED = (
    "it searches its parameter by itself; take the transformation of a given one, such as scipy.special.boxcox, and "
    "ftrans.argmin over its likelihood, such as boxcox_llf"
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
    "binned_statistic": "take np.bincount(np.digitize(x, edges), weights=values), and divide it by that of ones",
    "percentileofscore": "it counts numbers, so its derivative is zero; take the cdf of a distribution",
    "scoreatpercentile": "take np.percentile",
}  # fmt: skip

FUNCTIONS = {
    name: refused(getattr(scipy.stats, name), f"scipy.stats.{name}", why)
    for name, why in REASONS.items()
    if hasattr(scipy.stats, name)
}
