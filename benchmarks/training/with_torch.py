"""The models and their steps in torch's eager mode, with its fused Adam, on one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from . import shapes as s

torch.set_num_threads(1)


class MLP(nn.Sequential):
    def __init__(self) -> None:
        layers = [nn.Linear(s.PIXELS, s.HIDDEN), nn.ReLU(), nn.Linear(s.HIDDEN, s.HIDDEN), nn.ReLU()]
        super().__init__(*layers, nn.Linear(s.HIDDEN, s.CLASSES))


class CNN(nn.Sequential):
    def __init__(self) -> None:
        first, second = s.CHANNELS
        layers = [nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        super().__init__(*layers, nn.Linear(second * (s.IMAGE // 4) ** 2, s.CLASSES))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(s.WIDTH), nn.LayerNorm(s.WIDTH)
        self.qkv, self.out = nn.Linear(s.WIDTH, 3 * s.WIDTH), nn.Linear(s.WIDTH, s.WIDTH)
        self.up, self.down = nn.Linear(s.WIDTH, 4 * s.WIDTH), nn.Linear(4 * s.WIDTH, s.WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, s.HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(s.VOCABULARY, s.WIDTH), nn.Embedding(s.LENGTH, s.WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(s.LAYERS)))
        self.norm, self.head = nn.LayerNorm(s.WIDTH), nn.Linear(s.WIDTH, s.VOCABULARY, bias=False)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(torch.arange(x.shape[1])))))


class LSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.last = nn.LSTM(s.FEATURES, s.STATES, batch_first=True), nn.Linear(s.STATES, s.CLASSES)

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
        x = self.up1(self.side2(torch.cat([x, second], 1)))
        return self.last(self.side1(torch.cat([x, first], 1)))


MODELS: dict[str, Callable[[], Any]] = {"mlp": MLP, "cnn": CNN, "gpt": GPT, "lstm": LSTM}


def trainer(name: str) -> Callable[[], float]:
    """A function that takes one step of training and returns the loss."""
    model = MODELS[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=s.LEARNING_RATE, fused=True)
    x, y = map(torch.from_numpy, s.batch(name))
    y = y.long()

    def call() -> float:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.item()

    return call


def gan_trainer() -> Callable[[], float]:
    """The same for the generator and the discriminator of a DCGAN, with an optimizer each."""
    made, judge = generator(), discriminator()
    of_made, of_judge = [
        torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True) for m in (made, judge)
    ]
    images, noise = map(torch.from_numpy, s.gan_batch())

    def call() -> float:
        of_judge.zero_grad()
        false = made(noise)
        loss = F.softplus(-judge(images)).mean() + F.softplus(judge(false.detach())).mean()
        loss.backward()
        of_judge.step()
        of_made.zero_grad()
        F.softplus(-judge(false)).mean().backward()
        of_made.step()
        return loss.item()

    return call


def unet_trainer() -> Callable[[], float]:
    """The same for a U-Net that finds masks."""
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=s.LEARNING_RATE, fused=True)
    images, masks = map(torch.from_numpy, s.unet_batch())

    def call() -> float:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(images), masks)
        loss.backward()
        optimizer.step()
        return loss.item()

    return call


def chain(count: int) -> Callable[[], float]:
    factors = [torch.nn.Parameter(torch.ones(4)) for _ in range(count)]
    optimizer = torch.optim.SGD(factors, lr=s.LEARNING_RATE)
    inputs = torch.from_numpy(np.ones((2, 4), np.float32))

    def call() -> float:
        optimizer.zero_grad()
        total = inputs
        for factor in factors:
            total = total + inputs * factor
        loss = (total**2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return call


def build_gpt() -> Any:
    return GPT()
