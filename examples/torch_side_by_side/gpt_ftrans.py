"""A small GPT that learns to write text by characters, trained by AdamW with a warm-up and cosine decay."""

import math
from dataclasses import dataclass

from synthetic import sentences

import ftrans.autograd as torch
from ftrans import nn
from ftrans.nn import functional as F


@dataclass
class Config:
    vocabulary: int = 96
    context: int = 32
    layers: int = 2
    heads: int = 4
    width: int = 64
    dropout: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        mask = torch.tril(torch.ones(config.context, config.context))
        self.register_buffer("mask", mask.view(1, 1, config.context, config.context))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (y.view(B, T, self.heads, C // self.heads).transpose(1, 2) for y in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        y = self.dropout(F.softmax(scores, dim=-1)) @ v
        return self.out(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = CausalSelfAttention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.mlp = nn.Sequential(
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(),
            nn.Linear(4 * config.width, config.width),
            nn.Dropout(config.dropout),
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self.init_weights)
        for name, p in self.named_parameters():
            if name.endswith("out.weight"):
                nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * config.layers))

    def init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens, targets=None):
        T = tokens.size(1)
        places = torch.arange(0, T, dtype=torch.long, device=tokens.device)
        x = self.dropout(self.tokens(tokens) + self.places(places))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if targets is None:
            return self.head(x[:, [-1], :]), None
        logits = self.head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    @torch.no_grad()
    def generate(self, tokens, count, temperature=1.0, top_k=None):
        for _ in range(count):
            logits, _ = self(tokens[:, -self.config.context :])
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                best, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < best[:, [-1]]] = -float("Inf")
            probabilities = F.softmax(logits, dim=-1)
            tokens = torch.cat((tokens, torch.multinomial(probabilities, num_samples=1)), dim=1)
        return tokens


def configure_optimizer(model, weight_decay, lr):
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    decayed = [p for p in parameters.values() if p.dim() >= 2]
    others = [p for p in parameters.values() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99))


def learning_rate(step, warm_up=20, steps=300, most=3e-3, least=3e-4):
    if step < warm_up:
        return most * (step + 1) / (warm_up + 1)
    ratio = min(1.0, (step - warm_up) / (steps - warm_up))
    return least + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (most - least)


def build():
    return GPT(Config())


def encode(text):
    return torch.tensor([ord(c) - 32 for c in text], dtype=torch.long)


def decode(codes):
    return "".join(chr(code + 32) for code in codes.tolist())


def train(model, steps, batch_size=16):
    codes = encode(" ".join(word for sentence in sentences(1000) for word in sentence))
    optimizer = configure_optimizer(model, weight_decay=0.1, lr=1e-3)
    losses = []
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        starts = torch.randint(len(codes) - model.config.context, (batch_size,))
        x = torch.stack([codes[i : i + model.config.context] for i in starts])
        y = torch.stack([codes[i + 1 : i + 1 + model.config.context] for i in starts])
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    model = build()
    print(f"loss: {train(model, steps=300)[-1]:.3f} nats per character")
    model.eval()
    print(decode(model.generate(encode("the ")[None], 200, top_k=10)[0]))
