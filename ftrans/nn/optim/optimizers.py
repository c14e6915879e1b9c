"""The optimizers of torch.optim, with its names, hyperparameters and defaults, and Lion."""

from __future__ import annotations

from typing import Any

from ...base.source import at_line, user_line
from . import rules
from .grouped import GroupedOptimizer


class SGD(GroupedOptimizer):
    """Stochastic gradient descent, with momentum (Sutskever et al., ICML 2013).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        momentum: weight of the previous update in each one.
        dampening: by how much less than 1 a gradient counts in it, but for the first.
        weight_decay: factor by which the parameter is added to the gradient.
        nesterov: whether the gradient counts where the momentum leads to.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.SGD(model, lr=0.1, momentum=0.9)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.SGDRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"Nesterov's momentum takes a momentum above 0 and no dampening, not momentum={momentum}, "
                f"dampening={dampening}{at_line(user_line())}"
            )
        numbers = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, numbers, {"nesterov": nesterov, "maximize": maximize}, hints)


class ASGD(GroupedOptimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, SIAM J. Control Optim., 1992).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        lambd: by which it decays.
        alpha: the power of that decay.
        t0: the step after which parameters are averaged, in the state `ax`.
        weight_decay: factor by which the parameter is added to the gradient.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.ASGD(model, t0=100)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.ASGDRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, numbers, {"maximize": maximize}, hints)


class Rprop(GroupedOptimizer):
    """Resilient backpropagation: step sizes that follow the signs of gradients (Riedmiller and Braun, 1993).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the first step size.
        etas: factors of a step size where the sign has changed, and where it has not.
        step_sizes: the least and the greatest step size.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.Rprop(model)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.RpropRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"etas are a factor below 1 and one above 1, not {etas}{at_line(user_line())}")
        numbers = {"lr": lr, "etas": etas, "step_sizes": step_sizes}
        super().__init__(params, numbers, {"maximize": maximize}, hints)


class Adagrad(GroupedOptimizer):
    """Gradients divided by the root of the sum of their squares (Duchi, Hazan and Singer, 2011).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        lr_decay: by how much its inverse grows in each step, relatively.
        weight_decay: factor by which the parameter is added to the gradient.
        initial_accumulator_value: what the sums begin with.
        eps: a small number that is added to the root.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.Adagrad(model, lr=0.1)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.AdagradRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
        }
        super().__init__(params, numbers, {"maximize": maximize}, hints)


class Adadelta(GroupedOptimizer):
    """Gradients scaled by the ratio of typical changes to typical gradients (Zeiler, arXiv:1212.5701).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: factor of the update.
        rho: weight of the old average in those of squares.
        eps: added to averages of squares.
        weight_decay: factor by which the parameter is added to the gradient.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.Adadelta(model)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.AdadeltaRule

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, numbers, {"maximize": maximize}, hints)


class RMSprop(GroupedOptimizer):
    """Gradients divided by the root of an average of their squares (Hinton, 2012; Graves, arXiv:1308.0850).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        alpha: weight of the old average.
        eps: a small number that is added to the root.
        weight_decay: factor by which the parameter is added to the gradient.
        momentum: weight of the previous update in each one.
        centered: whether the variance is taken in place of the squares.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.RMSprop(model, momentum=0.9)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.RMSpropRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, numbers, {"centered": centered, "maximize": maximize}, hints)


class Adam(GroupedOptimizer):
    """The optimizer Adam: averages of gradients, divided by the root of averages of their squares (arXiv:1412.6980).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        betas: decay rates of the averages of gradients and of squares.
        eps: a small number that is added to the root.
        weight_decay: factor by which the parameter is added to the gradient.
        amsgrad: whether to divide by the largest average of squares so far (Reddi, Kale and Kumar, 2018).
        decoupled_weight_decay: whether the weight decay is that of `AdamW`.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.Adam(model, lr=0.01)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.AdamRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        decoupled_weight_decay: bool = False,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params,
            numbers,
            {"amsgrad": amsgrad, "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize},
            hints,
        )


class AdamW(GroupedOptimizer):
    """Adam with weight decay that is decoupled from the gradient (Loshchilov and Hutter, arXiv:1711.05101).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        betas: decay rates of the averages of gradients and of squares.
        eps: a small number that is added to the root.
        weight_decay: by which part, times the learning rate, a parameter shrinks in each step.
        amsgrad: whether to divide by the largest average of squares so far (Reddi, Kale and Kumar, 2018).
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.AdamW(model, weight_decay=0.1)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.AdamRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, numbers, {"amsgrad": amsgrad, "decoupled_weight_decay": True, "maximize": maximize}, hints
        )


class Adamax(GroupedOptimizer):
    """Adam with the largest gradient in place of the root of squares (Kingma and Ba, arXiv:1412.6980).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        betas: weights of the old average, and of the old largest gradient.
        eps: added to gradients.
        weight_decay: factor by which the parameter is added to the gradient.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.Adamax(model)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.AdamaxRule

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, numbers, {"maximize": maximize}, hints)


class NAdam(GroupedOptimizer):
    """Adam with Nesterov's momentum (Dozat, Incorporating Nesterov momentum into Adam, 2016).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        betas: decay rates of the averages of gradients and of squares.
        eps: a small number that is added to the root.
        weight_decay: factor by which the parameter is added to the gradient.
        momentum_decay: how fast the momentum grows to its value.
        decoupled_weight_decay: whether the weight decay is that of `AdamW`.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.NAdam(model)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.NAdamRule

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay}
        super().__init__(
            params, numbers, {"decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}, hints
        )


class RAdam(GroupedOptimizer):
    """Adam that adapts step sizes only once it has seen enough gradients (Liu et al., arXiv:1908.03265).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        betas: decay rates of the averages of gradients and of squares.
        eps: a small number that is added to the root.
        weight_decay: factor by which the parameter is added to the gradient.
        decoupled_weight_decay: whether the weight decay is that of `AdamW`.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.RAdam(model)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.RAdamRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, numbers, {"decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}, hints
        )


class Lion(GroupedOptimizer):
    """Steps by the sign of an average of gradients (Chen et al., arXiv:2302.06675).

    Args:
        params: `model.parameters()`, the model, a list of parameters, of pairs of a name and a parameter, or of groups:
            dictionaries with the entry "params", and hyperparameters that differ from the others.
        lr: the learning rate.
        betas: weights of the old average in the update, and in the new average.
        weight_decay: by which part, times the learning rate, a parameter shrinks in each step.
        maximize: whether to maximize instead of minimizing.
        hints: `foreach`, `fused` and `capturable`, by which torch chooses between implementations of the same update;
            they have no effect here.

    Raises:
        ValueError: a hyperparameter is out of its range, or there is no parameter.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nn.optim.Lion(model, weight_decay=0.1)
        >>> gradients = nn.grad(lambda model: (model(np.eye(2, dtype=np.float32)) ** 2).mean())(model)
        >>> optimizer.step(gradients)
    """

    _rule = rules.LionRule

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        numbers = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        super().__init__(params, numbers, {"maximize": maximize}, hints)
