"""A graph attention network that finds the communities of a graph, told those of a few of its nodes."""

import numpy as np

import ftrans.autograd as torch
from ftrans import nn
from ftrans.nn import functional as F


class GraphAttention(nn.Module):
    """New features of each node: means over its neighbours, weighted by attention; several heads side by side."""

    def __init__(self, in_features, out_features, heads, concat=True, dropout=0.4, slope=0.2):
        super().__init__()
        self.heads, self.concat = heads, concat
        self.linear = nn.Linear(in_features, heads * out_features, bias=False)
        self.score_source = nn.Parameter(torch.empty(1, heads, out_features))
        self.score_target = nn.Parameter(torch.empty(1, heads, out_features))
        self.bias = nn.Parameter(torch.empty(heads * out_features if concat else out_features))
        self.dropout = nn.Dropout(p=dropout)
        self.leaky_relu = nn.LeakyReLU(slope)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.xavier_uniform_(self.score_source)
        nn.init.xavier_uniform_(self.score_target)
        nn.init.zeros_(self.bias)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        nodes = x.size(0)
        h = self.dropout(self.linear(self.dropout(x)).view(nodes, self.heads, -1))
        scores_source = (h * self.score_source).sum(dim=-1).index_select(0, source)
        scores_target = (h * self.score_target).sum(dim=-1).index_select(0, target)
        attention = self.dropout(self.softmax(self.leaky_relu(scores_source + scores_target), target, nodes))
        messages = h.index_select(0, source) * attention.unsqueeze(-1)
        index = target.view(-1, 1, 1).expand_as(messages)
        out = torch.zeros_like(h).scatter_add_(0, index, messages)
        out = out.view(nodes, -1) if self.concat else out.mean(dim=1)
        return out + self.bias

    def softmax(self, scores, target, nodes):
        """The softmax over the edges that lead to the same node."""
        weights = (scores - scores.max()).exp()
        index = target.unsqueeze(-1).expand_as(weights)
        sums = torch.zeros(nodes, self.heads, dtype=scores.dtype).scatter_add_(0, index, weights)
        return weights / (sums.index_select(0, target) + 1e-16)


class GAT(nn.Module):
    def __init__(self, features, width, classes, heads=4):
        super().__init__()
        self.first = GraphAttention(features, width, heads)
        self.second = GraphAttention(heads * width, classes, heads=1, concat=False)

    def forward(self, x, edges):
        return self.second(F.elu(self.first(x, edges)), edges)


def communities(count=200, classes=4, features=16, seed=0):
    """A graph whose nodes have more neighbours in their own community, and noisy features.

    Returns:
        Features, float[count, features]; edges in both directions and to the node itself, int64[2, edges]; communities,
        int64[count].
    """
    rng = np.random.default_rng(seed)
    kinds = rng.integers(classes, size=count)
    chances = np.where(kinds[:, None] == kinds, 0.08, 0.01)
    linked = np.triu(rng.random((count, count)) < chances, 1)
    edges = np.stack(np.nonzero(linked | linked.T | np.eye(count, dtype=bool)))
    centres = rng.normal(size=(classes, features))
    x = (centres[kinds] + 2.0 * rng.normal(size=(count, features))) / np.sqrt(features)
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(edges), torch.from_numpy(kinds)


def accuracy(logits, labels, mask):
    return (logits[mask].argmax(dim=1) == labels[mask]).float().mean().item()


def build():
    return GAT(features=16, width=8, classes=4)


def train(model, steps):
    x, edges, labels = communities()
    known = torch.arange(len(labels)) < 40
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    losses = []
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edges)[known], labels[known])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    model = build()
    train(model, steps=200)
    model.eval()
    x, edges, labels = communities()
    with torch.no_grad():
        logits = model(x, edges)
    print(f"accuracy for the other nodes: {accuracy(logits, labels, torch.arange(len(labels)) >= 40):.2f}")
