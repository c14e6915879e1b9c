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
