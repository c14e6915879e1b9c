"""The models and their steps in ftrans.nn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optax

from ftrans import nn
from ftrans.nn import functional as F

from . import shapes as s


class MLP(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(s.PIXELS, s.HIDDEN)
        self.second = nn.Linear(s.HIDDEN, s.HIDDEN)
        self.last = nn.Linear(s.HIDDEN, s.CLASSES)

    def forward(self, x: Any) -> Any:
        return self.last(F.relu(self.second(F.relu(self.first(x)))))


class CNN(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Conv2d(1, s.CHANNELS[0], 3, padding=1)
        self.second = nn.Conv2d(s.CHANNELS[0], s.CHANNELS[1], 3, padding=1)
        self.last = nn.Linear(s.CHANNELS[1] * (s.IMAGE // 4) ** 2, s.CLASSES)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.last(x.reshape(len(x), -1))


class Block(nn.Module):
    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(s.WIDTH), nn.LayerNorm(s.WIDTH)
        self.qkv, self.out = nn.Linear(s.WIDTH, 3 * s.WIDTH), nn.Linear(s.WIDTH, s.WIDTH)
        self.up, self.down = nn.Linear(s.WIDTH, 4 * s.WIDTH), nn.Linear(4 * s.WIDTH, s.WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        heads = self.qkv(self.norm1(x)).reshape(batch, length, 3, s.HEADS, width // s.HEADS)
        q, k, v = np.moveaxis(heads, (2, 3), (0, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(np.moveaxis(mixed, 1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self) -> None:
        self.tokens = nn.Embedding(s.VOCABULARY, s.WIDTH)
        self.places = nn.Embedding(s.LENGTH, s.WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(s.LAYERS)))
        self.norm = nn.LayerNorm(s.WIDTH)
        self.head = nn.Linear(s.WIDTH, s.VOCABULARY, bias=False)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(np.arange(x.shape[1])))))


class LSTM(nn.Module):
    def __init__(self) -> None:
        self.lstm = nn.LSTM(s.FEATURES, s.STATES, batch_first=True)
        self.last = nn.Linear(s.STATES, s.CLASSES)

    def forward(self, x: Any) -> Any:
        return self.last(self.lstm(x)[0][:, -1])


def generator() -> Any:
    c = s.GENERATOR
    layers = [nn.ConvTranspose2d(s.NOISE, 4 * c, 4, 1, 0, bias=False), nn.BatchNorm2d(4 * c), nn.ReLU()]
    layers += [nn.ConvTranspose2d(4 * c, 2 * c, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * c), nn.ReLU()]
    layers += [nn.ConvTranspose2d(2 * c, c, 4, 2, 1, bias=False), nn.BatchNorm2d(c), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(c, 3, 4, 2, 1, bias=False), nn.Tanh())


def discriminator() -> Any:
    c = s.GENERATOR
    layers = [nn.Conv2d(3, c, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
    layers += [nn.Conv2d(c, 2 * c, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * c), nn.LeakyReLU(0.2)]
    layers += [nn.Conv2d(2 * c, 4 * c, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * c), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(4 * c, 1, 4, 1, 0, bias=False), nn.Flatten(0))


def twice(inputs: int, outputs: int) -> Any:
    """Two convolutions, normalized."""
    layers = [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        a, b, c = s.UNET
        self.down1, self.down2, self.bottom = twice(3, a), twice(a, b), twice(b, c)
        self.up2, self.up1 = nn.ConvTranspose2d(c, b, 2, 2), nn.ConvTranspose2d(b, a, 2, 2)
        self.side2, self.side1, self.last = twice(2 * b, b), twice(2 * a, a), nn.Conv2d(a, 1, 1)

    def forward(self, x: Any) -> Any:
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        x = self.up2(self.bottom(F.max_pool2d(second, 2)))
        x = self.up1(self.side2(np.concatenate([x, second], 1)))
        return self.last(self.side1(np.concatenate([x, first], 1)))


MODELS = {"mlp": MLP, "cnn": CNN, "gpt": GPT, "lstm": LSTM}


def loss(model: Any, x: Any, y: Any) -> Any:
    logits = model(x)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def trainer(name: str) -> Callable[[], float]:
    """A function that takes one step of training and returns the loss."""
    model = MODELS[name]()
    optimizer = nn.Optimizer(model, optax.adam(s.LEARNING_RATE))
    x, y = s.batch(name)

    @nn.jit(donate_argnums=(0, 1))
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        value, gradients = nn.value_and_grad(loss)(model, x, y)
        optimizer.step(gradients)
        return value

    return lambda: float(step(model, optimizer, x, y))


class Sum(nn.Module):
    """A sum of elementwise products, which costs next to nothing but the handling of its parameters."""

    def __init__(self, count: int) -> None:
        self.factors = nn.ParameterList([np.ones(4, np.float32) for _ in range(count)])

    def forward(self, x: Any) -> Any:
        total = x
        for factor in self.factors:
            total = total + x * factor
        return total


def gan_trainer() -> Callable[[], float]:
    """The same for the generator and the discriminator of a DCGAN, with an optimizer each."""
    made, judge = generator(), discriminator()
    of_made, of_judge = [nn.Optimizer(m, optax.adam(2e-4, b1=0.5)) for m in (made, judge)]
    images, noise = s.gan_batch()

    def of_true_and_false(judge: Any, images: Any, false: Any) -> Any:
        return F.softplus(-judge(images)).mean() + F.softplus(judge(false)).mean()

    def of_false(made: Any, judge: Any, noise: Any) -> Any:
        return F.softplus(-judge(made(noise))).mean()

    @nn.jit(donate_argnums=(0, 1, 2, 3))
    def step(made: Any, judge: Any, of_made: Any, of_judge: Any, images: Any, noise: Any) -> Any:
        loss, gradients = nn.value_and_grad(of_true_and_false)(judge, images, made(noise))
        of_judge.step(gradients)
        of_made.step(nn.grad(of_false)(made, judge, noise))
        return loss

    return lambda: float(step(made, judge, of_made, of_judge, images, noise))


def unet_trainer() -> Callable[[], float]:
    """The same for a U-Net that finds masks."""
    model = UNet()
    optimizer = nn.Optimizer(model, optax.adam(s.LEARNING_RATE))
    images, masks = s.unet_batch()

    def loss(model: Any, images: Any, masks: Any) -> Any:
        return F.binary_cross_entropy_with_logits(model(images), masks)

    @nn.jit(donate_argnums=(0, 1))
    def step(model: Any, optimizer: Any, images: Any, masks: Any) -> Any:
        value, gradients = nn.value_and_grad(loss)(model, images, masks)
        optimizer.step(gradients)
        return value

    return lambda: float(step(model, optimizer, images, masks))


def chain(count: int) -> Callable[[], float]:
    """A step of a model with so many parameter arrays."""
    model = Sum(count)
    optimizer = nn.Optimizer(model, optax.sgd(s.LEARNING_RATE))
    x = np.ones((2, 4), np.float32)

    @nn.jit(donate_argnums=(0, 1))
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        value, gradients = nn.value_and_grad(lambda model, x: (model(x) ** 2).mean())(model, x)
        optimizer.step(gradients)
        return value

    return lambda: float(step(model, optimizer, x))


def build_gpt() -> Any:
    return GPT()


def retraces(steps: int) -> int:
    """How often a step is traced that is called so many times, in training and in evaluation by turns."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 1))
    x = np.ones((2, 4), np.float32)
    traces = 0

    @nn.jit
    def step(model: Any, x: Any) -> Any:
        nonlocal traces
        traces += 1
        return model(x).sum()

    for i in range(steps):
        model.train(i % 2 == 0)
        step(model, x)
    return traces
