"""An LSTM that predicts the next word, trained by back-propagation through pieces of a long text."""

import math

from synthetic import sentences

import ftrans.autograd as torch
import ftrans.nn.functional as F
from ftrans import nn


class RNNModel(nn.Module):
    def __init__(self, vocabulary, width, hidden, layers, dropout=0.2):
        super().__init__()
        self.vocabulary = vocabulary
        self.hidden = hidden
        self.layers = layers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, hidden, layers, dropout=dropout)
        self.decoder = nn.Linear(hidden, vocabulary)
        self.init_weights()

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        self.decoder.weight.data.uniform_(-initrange, initrange)

    def forward(self, tokens, state):
        embedded = self.drop(self.encoder(tokens))
        output, state = self.rnn(embedded, state)
        decoded = self.decoder(self.drop(output))
        decoded = decoded.view(-1, self.vocabulary)
        return F.log_softmax(decoded, dim=1), state

    def init_state(self, batch_size):
        weight = next(self.parameters())
        return (
            weight.new_zeros(self.layers, batch_size, self.hidden),
            weight.new_zeros(self.layers, batch_size, self.hidden),
        )


class Corpus:
    def __init__(self, count, seed):
        text = [word for sentence in sentences(count, seed) for word in sentence]
        self.words = sorted(set(text))
        numbers = {word: number for number, word in enumerate(self.words)}
        self.tokens = torch.tensor([numbers[word] for word in text], dtype=torch.int64)


def batchify(data, batch_size):
    length = data.size(0) // batch_size
    data = data.narrow(0, 0, length * batch_size)
    return data.view(batch_size, -1).t().contiguous()


def get_batch(source, i, length=20):
    length = min(length, len(source) - 1 - i)
    return source[i : i + length], source[i + 1 : i + 1 + length].view(-1)


def repackage(state):
    """The same numbers, detached from their history."""
    if isinstance(state, torch.Tensor):
        return state.detach()
    return tuple(repackage(v) for v in state)


def evaluate(model, source):
    model.eval()
    total = 0.0
    state = model.init_state(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, 20):
            data, targets = get_batch(source, i)
            output, state = model(data, state)
            total += len(data) * F.nll_loss(output, targets).item()
    return total / (len(source) - 1)


def build():
    return RNNModel(vocabulary=35, width=32, hidden=64, layers=2)


def train(model, steps, lr=16.0, clip=0.25):
    source = batchify(Corpus(2000, seed=0).tokens, batch_size=16)
    losses = []
    while True:
        model.train()
        state = model.init_state(16)
        for i in range(0, source.size(0) - 1, 20):
            data, targets = get_batch(source, i)
            model.zero_grad()
            state = repackage(state)
            output, state = model(data, state)
            loss = F.nll_loss(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            losses.append(loss.item())
            if len(losses) == steps:
                return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    model = build()
    train(model, steps=200)
    held_out = Corpus(300, seed=1)
    loss = evaluate(model, batchify(held_out.tokens, batch_size=10))
    print(f"held out: perplexity {math.exp(loss):.2f} among {len(held_out.words)} words")
