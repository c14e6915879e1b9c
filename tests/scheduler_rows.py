"""Schedulers and the learning rates and momentums that torch makes with them in 200 steps.

Figures were made by torch 2.13: `python tests/scheduler_rows.py` prints them anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

STEPS = 200
# The steps whose rates are compared one by one; the sum of all is compared, too.
SHOWN = [1, 2, 5, 6, 19, 50, 51, 101, 150, 199]


def _sequential(s: Any, o: Any) -> Any:
    parts = [s.LinearLR(o, 0.1, total_iters=10), s.CosineAnnealingLR(o, 60), s.ExponentialLR(o, 0.98)]
    return s.SequentialLR(o, parts, [10, 70])


def _nested(s: Any, o: Any) -> Any:
    first = s.SequentialLR(o, [s.ConstantLR(o, 0.5, 4), s.StepLR(o, 7, 0.9)], [20])
    return s.SequentialLR(o, [first, s.PolynomialLR(o, 90, 2.0)], [60])


def _chained(s: Any, o: Any) -> Any:
    parts = [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.99), s.MultiStepLR(o, [30, 30, 90], 0.5)]
    return s.ChainedScheduler(parts)


# Functions of torch's namespace of schedulers, or ours, and an optimizer.
MAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 1 - 1 / (e + 3)),
    "StepLR": lambda s, o: s.StepLR(o, 30, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [6, 50, 50, 120], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 50),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.7, 50),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.97),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 150, 0.9),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 50, 0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 10, 2, 0.01),
    "CyclicLR": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.3, 20, 35, "triangular2"),
    "CyclicLR of steps": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 20, mode="exp_range", gamma=0.99, cycle_momentum=False),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.5, 0.3], total_steps=201),
    "OneCycleLR of three": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=67, steps_per_epoch=3, anneal_strategy="linear", three_phase=True
    ),
    "SequentialLR": _sequential,
    "nested": _nested,
    "ChainedScheduler": _chained,
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=4, cooldown=3, factor=0.7, min_lr=[0.01, 0.0]),
    "ReduceLROnPlateau of a score": lambda s, o: s.ReduceLROnPlateau(
        o, "max", patience=9, threshold=0.05, threshold_mode="abs"
    ),
}

# fmt: off
EXPECTED: dict[str, list[float]] = {
    "LambdaLR": [
        0.19, 0.025, 0.9, 0.1805, 0.01666666667, 0.9, 0.1547561875, 0.008333333333, 0.9, 0.1470183781,
        0.007142857143, 0.9, 0.07547072051, 0.0025, 0.9, 0.01538899506, 0.0009803921569, 0.9, 0.0146195453,
        0.0009615384615, 0.9, 0.001124900552, 0.0004901960784, 0.9, 9.11109949e-05, 0.0003311258278, 0.9,
        7.379508684e-06, 0.00025, 0.9, 184.0440171,
    ],
    "MultiplicativeLR": [
        0.15, 0.0375, 0.9, 0.12, 0.03, 0.9, 0.075, 0.01875, 0.9, 0.06666666667, 0.01666666667, 0.9,
        0.02727272727, 0.006818181818, 0.9, 0.01132075472, 0.002830188679, 0.9, 0.01111111111, 0.002777777778,
        0.9, 0.005769230769, 0.001442307692, 0.9, 0.003921568627, 0.0009803921569, 0.9, 0.00297029703,
        0.0007425742574, 0.9, 183.044662,
    ],
    "StepLR": [
        0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.1, 0.025, 0.9, 0.1,
        0.025, 0.9, 0.025, 0.00625, 0.9, 0.00625, 0.0015625, 0.9, 0.003125, 0.00078125, 0.9, 194.5976563,
    ],
    "MultiStepLR": [
        0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.06, 0.015, 0.9, 0.06, 0.015, 0.9, 0.0054, 0.00135,
        0.9, 0.0054, 0.00135, 0.9, 0.0054, 0.00135, 0.9, 0.00162, 0.000405, 0.9, 0.00162, 0.000405, 0.9,
        185.186525,
    ],
    "ConstantLR": [
        0.05, 0.0125, 0.9, 0.05, 0.0125, 0.9, 0.05, 0.0125, 0.9, 0.05, 0.0125, 0.9, 0.05, 0.0125, 0.9, 0.2,
        0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 220.8125,
    ],
    "LinearLR": [
        0.0224, 0.0056, 0.9, 0.0248, 0.0062, 0.9, 0.032, 0.008, 0.9, 0.0344, 0.0086, 0.9, 0.0656, 0.0164, 0.9,
        0.14, 0.035, 0.9, 0.14, 0.035, 0.9, 0.14, 0.035, 0.9, 0.14, 0.035, 0.9, 0.14, 0.035, 0.9, 211.325,
    ],
    "ExponentialLR": [
        0.194, 0.0485, 0.9, 0.18818, 0.047045, 0.9, 0.1717468051, 0.04293670128, 0.9, 0.166594401,
        0.04164860025, 0.9, 0.1121225449, 0.02803063623, 0.9, 0.04361307507, 0.01090326877, 0.9, 0.04230468282,
        0.0105761707, 0.9, 0.009225186538, 0.002306296634, 0.9, 0.002073911098, 0.0005184777745, 0.9,
        0.0004662352598, 0.0001165588149, 0.9, 188.065055,
    ],
    "PolynomialLR": [
        0.198799599, 0.04969989975, 0.9, 0.1975983921, 0.04939959803, 0.9, 0.1939898756, 0.0484974689, 0.9,
        0.1927853843, 0.04819634606, 0.9, 0.1770484091, 0.04426210227, 0.9, 0.1388506325, 0.03471265813, 0.9,
        0.1376003497, 0.03440008743, 0.9, 0.07306751452, 0.01826687863, 0.9, 0.0, 0.0, 0.9, 0.0, 0.0, 0.9,
        199.6116887,
    ],
    "CosineAnnealingLR": [
        0.1998036595, 0.04995165485, 0.9, 0.1992154128, 0.04980681018, 0.9, 0.1951301234, 0.04880088465, 0.9,
        0.1930127603, 0.0482795239, 0.9, 0.137128393, 0.03451905154, 0.9, 0.001, 0.001, 0.9, 0.001196340521,
        0.001048345154, 0.9, 0.1998036595, 0.04995165485, 0.9, 0.001, 0.001, 0.9, 0.1998036595, 0.04995165485,
        0.9, 205.2,
    ],
    "CosineAnnealingWarmRestarts": [
        0.195350369, 0.04902113033, 0.9, 0.1818566145, 0.04618033989, 0.9, 0.105, 0.03, 0.9, 0.07564338553,
        0.02381966011, 0.9, 0.1198612742, 0.0331286893, 0.9, 0.105, 0.03, 0.9, 0.09754638591, 0.02843081809,
        0.9, 0.1378811204, 0.03692234114, 0.9, 0.2, 0.05, 0.9, 0.1593198562, 0.0414357592, 0.9, 212.3041248,
    ],
    "CyclicLR": [
        0.0245, 0.034, 0.895, 0.039, 0.048, 0.89, 0.0825, 0.09, 0.875, 0.097, 0.104, 0.87, 0.2855, 0.286, 0.805,
        0.05142857143, 0.06, 0.8857142857, 0.04314285714, 0.052, 0.8885714286, 0.04728571429, 0.056,
        0.8871428571, 0.04107142857, 0.05, 0.8892857143, 0.03175, 0.041, 0.8925, 209.9154464,
    ],
    "CyclicLR of steps": [
        0.024355, 0.024355, 0.9, 0.0384229, 0.0384229, 0.9, 0.07894677862, 0.07894677862, 0.9, 0.091908773,
        0.091908773, 0.9, 0.2376094559, 0.2376094559, 0.9, 0.09772587973, 0.09772587973, 0.9, 0.105533483,
        0.105533483, 0.9, 0.1098334909, 0.1098334909, 0.9, 0.04211050915, 0.04211050915, 0.9, 0.01196232857,
        0.01196232857, 0.9, 208.9047984,
    ],
    "OneCycleLR": [
        0.02033672086, 0.01220203252, 0.9499298498, 0.02134593861, 0.01280756317, 0.9497195961, 0.02837087224,
        0.01702252334, 0.9482560683, 0.03202303928, 0.01921382357, 0.9474952001, 0.1316593223, 0.07899559338,
        0.9267376412, 0.4714547201, 0.2828728321, 0.8559469333, 0.4771693187, 0.2863015912, 0.8547563919,
        0.3992402962, 0.2395441777, 0.8701520214, 0.1402748813, 0.08416492879, 0.9219453115, 6.431631774e-05,
        3.858979064e-05, 0.9499875367, 260.9330321,
    ],
    "OneCycleLR of three": [
        0.02809443508, 0.02809443508, 0.9483136594, 0.03618887015, 0.03618887015, 0.9466273187, 0.06047217538,
        0.06047217538, 0.9415682968, 0.06856661046, 0.06856661046, 0.9398819562, 0.1737942664, 0.1737942664,
        0.9179595278, 0.4247217538, 0.4247217538, 0.865682968, 0.4328161889, 0.4328161889, 0.8639966273,
        0.1624620573, 0.1624620573, 0.9203204047, 0.01228578378, 0.01228578378, 0.95, 0.0002476756757,
        0.0002476756757, 0.95, 247.3488006,
    ],
    "SequentialLR": [
        0.038, 0.0095, 0.9, 0.056, 0.014, 0.9, 0.11, 0.0275, 0.9, 0.128, 0.032, 0.9, 0.1891006524, 0.0472751631,
        0.9, 0.05, 0.0125, 0.9, 0.0455360965, 0.01138402412, 0.9, 0.1069149266, 0.02672873165, 0.9,
        0.03972977002, 0.009932442504, 0.9, 0.01476365065, 0.003690912662, 0.9, 200.4763119,
    ],
    "nested": [
        0.1, 0.025, 0.9, 0.1, 0.025, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.13122, 0.032805,
        0.9, 0.13122, 0.032805, 0.9, 0.05928395062, 0.01482098765, 0.9, 0.0, 0.0, 0.9, 0.0, 0.0, 0.9, 199.802623,
    ],
    "ChainedScheduler": [
        0.0198, 0.00495, 0.9, 0.019602, 0.0049005, 0.9, 0.019019801, 0.00475495025, 0.9, 0.01882960299,
        0.004707400747, 0.9, 0.01652337248, 0.004130843119, 0.9, 0.03025030336, 0.007562575839, 0.9,
        0.02994780032, 0.007486950081, 0.9, 0.009059300447, 0.002264825112, 0.9, 0.005536294681, 0.00138407367,
        0.9, 0.003383325123, 0.0008458312807, 0.9, 185.3292371,
    ],
    "ReduceLROnPlateau": [
        0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.14, 0.035, 0.9, 0.0686, 0.01715, 0.9,
        0.0686, 0.01715, 0.9, 0.011529602, 0.0028824005, 0.9, 0.01, 0.0003391115364, 0.9, 0.01, 5.699447593e-05,
        0.9, 191.458817,
    ],
    "ReduceLROnPlateau of a score": [
        0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.2, 0.05, 0.9, 0.02, 0.005, 0.9, 2e-05, 5e-06, 0.9,
        2e-06, 5e-07, 0.9, 2e-09, 5e-09, 0.9, 2e-09, 5e-09, 0.9, 2e-09, 5e-09, 0.9, 182.7777786,
    ],
}
# fmt: on


def metric(step: int) -> float:
    """What a plateau is found in."""
    return 1 / (1 + 0.05 * step) + 0.3 * math.sin(step)


def figures(scheduler: Any, optimizer: Any, between: Callable[[int], None] = lambda step: None) -> list[float]:
    """Rates of two groups, and a momentum, at some steps, and the sum over all steps."""
    found, total = [], 0.0
    for step in range(1, STEPS + 1):
        of_plateau = type(scheduler).__name__ == "ReduceLROnPlateau"
        scheduler.step(metric(step)) if of_plateau else scheduler.step()
        between(step)
        first, second = optimizer.param_groups
        row = [first["lr"], second["lr"], first["momentum"] if "momentum" in first else first["betas"][0]]
        total += sum(row)
        if step in SHOWN:
            found += row
    return [*found, total]


def main() -> None:
    import torch

    print("EXPECTED: dict[str, list[float]] = {")
    for name, make in MAKERS.items():
        first, second = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
        groups = [{"params": [first]}, {"params": [second], "lr": 0.05}]
        kind = torch.optim.SGD if name != "OneCycleLR" else torch.optim.AdamW
        options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
        optimizer = kind(groups, lr=0.2, **options)
        scheduler = make(torch.optim.lr_scheduler, optimizer)
        optimizer.step()
        print(f"    {name!r}: {[float(f'{x:.10g}') for x in figures(scheduler, optimizer)]},")
    print("}")


if __name__ == "__main__":
    main()
