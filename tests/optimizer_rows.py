"""Optimizers and what torch makes of a small problem in 20 steps with them.

Figures were made by torch 2.13: `python tests/optimizer_rows.py` prints them anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

FIRST = [np.array([[0.5, -1.2], [2.0, 0.1]]), np.array([0.3, -0.7])]
STEPS = 20


LBFGS_STEPS = 4


def valley(first: Any, second: Any) -> Any:
    """Two of Rosenbrock's functions, of a vector of three elements and one of one."""
    a, b, c, d = first[0], first[1], first[2], second[0]
    return 100 * (b - a**2) ** 2 + (1 - a) ** 2 + 100 * (d - c**2) ** 2 + (1 - c) ** 2 + 3 * a * d


BEFORE_VALLEY = [np.array([-1.2, 1.0, -0.5]), np.array([0.7])]


class Row(NamedTuple):
    """An optimizer, its hyperparameters, and all elements of the parameters after the steps."""

    name: str
    numbers: dict[str, Any]
    expected: list[float]


def gradients(step: int, parameters: list[Any]) -> list[Any]:
    """Gradients of a loss that differs from step to step."""
    return [0.3 * p + np.sin(1.7 * step + np.arange(p.size) + i).reshape(p.shape) for i, p in enumerate(parameters)]


ROWS = [
    Row(
        "SGD",
        {"lr": 0.1},
        [0.235410129324, -0.751183387179, 1.01749550531, 0.0772665958135, 0.0645081272115, -0.450749220591],
    ),
    Row(
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
        [-0.150450117062, 0.43856057253, -0.715019696135, -0.0607491954449, -0.0905981900834, 0.237466076569],
    ),
    Row(
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True},
        [8.65121611402, -11.013944143, 26.9416915998, -0.668397075204, 7.75010376687, -6.83359463801],
    ),
    Row(
        "Adam",
        {"lr": 0.05},
        [0.231782685447, -0.922759147158, 1.38529404333, 0.083632772515, 0.0896062357493, -0.518147396067],
    ),
    Row(
        "Adam",
        {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1},
        [0.195114576388, -0.818765159894, 1.2972031174, 0.0730991239035, 0.0719422250599, -0.450282481045],
    ),
    Row(
        "Adam",
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
        [0.205106625617, -0.826387795598, 1.23668997896, 0.0758436776065, 0.077311739296, -0.464129869543],
    ),
    Row(
        "AdamW",
        {"lr": 0.05, "weight_decay": 0.1},
        [0.205106625617, -0.826387795598, 1.23668997896, 0.0758436776065, 0.077311739296, -0.464129869543],
    ),
    Row(
        "Adamax",
        {"lr": 0.05, "weight_decay": 0.1},
        [0.27720227781, -0.99879433825, 1.52806557292, 0.0685712836853, 0.113788684261, -0.546533680702],
    ),
    Row(
        "NAdam",
        {"lr": 0.05, "weight_decay": 0.1},
        [0.260127102428, -0.863367944192, 1.4250895232, 0.0550876691445, 0.125704068539, -0.496816377123],
    ),
    Row(
        "NAdam",
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
        [0.260592001472, -0.856022951627, 1.34465297284, 0.0558224025285, 0.126184664449, -0.496268435573],
    ),
    Row(
        "RAdam",
        {"lr": 0.05, "weight_decay": 0.1},
        [0.405758942841, -1.14094887675, 1.71840779049, 0.111109426645, 0.182040646587, -0.671018957578],
    ),
    Row(
        "RAdam",
        {"lr": 0.05, "betas": (0.9, 0.8), "weight_decay": 0.1, "decoupled_weight_decay": True},
        [0.277967135675, -0.862705732602, 1.28598695591, 0.094012052795, 0.109389004081, -0.49622287407],
    ),
    Row(
        "Adagrad",
        {"lr": 0.1},
        [0.270446557761, -1.0276434126, 1.57463093525, 0.0449655143479, 0.142692406376, -0.589811124459],
    ),
    Row(
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2},
        [0.345130054609, -1.04460353635, 1.68113997316, 0.0929050186609, 0.171722624029, -0.607498555346],
    ),
    Row(
        "Adadelta",
        {"weight_decay": 0.1},
        [0.480064134993, -1.17414021658, 1.96396629649, 0.0958582969154, 0.287168804914, -0.682479083387],
    ),
    Row(
        "RMSprop",
        {"lr": 0.05},
        [-0.0847927839094, -0.540039945946, 0.49149985201, -0.0317505988875, -0.141640289474, -0.333516514256],
    ),
    Row(
        "RMSprop",
        {"lr": 0.05, "momentum": 0.9, "centered": True, "weight_decay": 0.1},
        [0.845644432306, -0.280365512825, 0.589030191969, 0.039152946175, 0.360578221024, -0.243397948304],
    ),
    Row("Rprop", {"lr": 0.05}, [0.4089375, -1.1989832, 1.6703976192, 0.0060625, 0.24619375, -0.7159375]),
    Row(
        "ASGD",
        {"t0": 5, "weight_decay": 0.1, "lr": 0.05},
        [0.313060269767, -0.854187789, 1.29840292542, 0.0802291962893, 0.147136550823, -0.503980886261],
    ),
]


# What LBFGS makes of the valley: the losses before its steps, and the parameters after them.
LBFGS_ROWS = [
    Row(
        "LBFGS",
        {"lr": 0.001},
        [
            44.18,
            40.8860964578,
            33.8082097927,
            29.9036794741,
            -1.17751356466,
            1.03109826305,
            -0.66257266035,
            0.750314895511,
        ],
    ),
    Row(
        "LBFGS",
        {"lr": 0.0005, "max_iter": 7, "history_size": 3},
        [
            44.18,
            43.8611312258,
            43.1236669821,
            39.4766511443,
            -1.19748556474,
            1.01338292268,
            -0.580783621793,
            0.712749168288,
        ],
    ),
    Row(
        "LBFGS",
        {"line_search_fn": "strong_wolfe"},
        [
            44.18,
            4.61748221856,
            0.911562215612,
            0.721950526177,
            0.913306851438,
            0.834129380949,
            0.267385486445,
            0.0577954059854,
        ],
    ),
    Row(
        "LBFGS",
        {"lr": 0.5, "max_iter": 7, "history_size": 3, "line_search_fn": "strong_wolfe"},
        [
            44.18,
            5.45198757339,
            5.26742687289,
            4.74944440475,
            -0.513101782129,
            0.266112293707,
            -0.957719001152,
            0.926204860095,
        ],
    ),
    Row(
        "LBFGS",
        {"line_search_fn": "strong_wolfe", "max_iter": 5, "max_eval": 4},
        [
            44.18,
            6.216765239,
            5.4329857232,
            5.3520557445,
            -0.751894215445,
            0.552485645172,
            -0.852797736226,
            0.709156977746,
        ],
    ),
]


def main() -> None:
    import torch

    for row in LBFGS_ROWS:
        parameters = [torch.tensor(x, requires_grad=True) for x in BEFORE_VALLEY]
        optimizer = torch.optim.LBFGS(parameters, **row.numbers)

        def closure(parameters: Any = parameters, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = valley(*parameters)
            loss.backward()
            return loss

        found = [float(optimizer.step(closure)) for _ in range(LBFGS_STEPS)]
        found += [x for p in parameters for x in p.detach().numpy().ravel()]
        print(row._replace(expected=[float(f"{x:.12g}") for x in found]))

    for row in ROWS:
        parameters = [torch.tensor(x, requires_grad=True) for x in FIRST]
        optimizer = getattr(torch.optim, row.name)(parameters, **row.numbers)
        for step in range(STEPS):
            for p, g in zip(parameters, gradients(step, [p.detach().numpy() for p in parameters]), strict=True):
                p.grad = torch.tensor(g)
            optimizer.step()
        print(row._replace(expected=[float(f"{x:.12g}") for p in parameters for x in p.detach().numpy().ravel()]))


if __name__ == "__main__":
    main()
