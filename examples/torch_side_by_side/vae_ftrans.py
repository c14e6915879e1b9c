"""A variational autoencoder of images of digits."""

from synthetic import digits

import ftrans.autograd as torch
from ftrans import nn
from ftrans.nn import functional as F
from ftrans.nn import optim
from ftrans.nn.data import DataLoader
from ftrans.nn.distributions import Normal, kl_divergence


class VAE(nn.Module):
    def __init__(self, pixels=256, hidden=128, latent=8):
        super().__init__()
        self.pixels = pixels
        self.fc1 = nn.Linear(pixels, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.fc2 = nn.Linear(latent, hidden)
        self.fc3 = nn.Linear(hidden, pixels)

    def encode(self, x):
        hidden = F.relu(self.fc1(x))
        return Normal(self.mean(hidden), torch.exp(0.5 * self.log_variance(hidden)))

    def decode(self, z):
        return torch.sigmoid(self.fc3(F.relu(self.fc2(z))))

    def forward(self, x):
        posterior = self.encode(x.view(-1, self.pixels))
        return self.decode(posterior.rsample()), posterior


def loss_function(reconstruction, x, posterior):
    entropy = F.binary_cross_entropy(reconstruction, x.view_as(reconstruction), reduction="sum")
    prior = Normal(torch.zeros_like(posterior.mean), torch.ones_like(posterior.stddev))
    return (entropy + kl_divergence(posterior, prior).sum()) / len(x)


def evaluate(model, loader):
    model.eval()
    total = 0
    with torch.no_grad():
        for data in loader:
            reconstruction, posterior = model(data)
            total += len(data) * loss_function(reconstruction, data, posterior).item()
    return total / len(loader.dataset)


def loader_of(count, seed):
    images, _ = digits(count, size=16, seed=seed)
    return DataLoader(torch.tensor(images > 0.4).float(), batch_size=64, shuffle=True)


def build():
    return VAE()


def train(model, steps):
    loader = loader_of(2048, seed=0)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    model.train()
    while True:
        for data in loader:
            optimizer.zero_grad()
            reconstruction, posterior = model(data)
            loss = loss_function(reconstruction, data, posterior)
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
            if len(losses) == steps:
                return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    model = build()
    train(model, steps=320)
    print(f"held out: at most {evaluate(model, loader_of(512, seed=1)):.1f} nats an image")
    with torch.no_grad():
        for image in model.decode(torch.randn(2, 8)).view(2, 16, 16):
            print("\n".join("".join(" .:*#"[int(4.99 * x)] for x in row) for row in image.tolist()))
