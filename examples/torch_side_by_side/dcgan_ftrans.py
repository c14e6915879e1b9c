"""A generative adversarial network of convolutions: two networks with an optimizer each."""

from synthetic import digits

import ftrans.autograd as torch
from ftrans import nn
from ftrans.nn import optim
from ftrans.nn.data import DataLoader, TensorDataset

LATENT = 32


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(LATENT, 2 * width, 4, 1, 0, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(True),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(True),
            nn.ConvTranspose2d(width, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(2 * width, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def build():
    generator = Generator()
    generator.apply(weights_init)
    discriminator = Discriminator()
    discriminator.apply(weights_init)
    return generator, discriminator


def train(generator, discriminator, steps):
    images, _ = digits(1024, size=16)
    dataset = TensorDataset(torch.from_numpy(2 * images - 1))
    loader = DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True)
    criterion = nn.BCELoss()
    optimizer_d = optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_g = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    losses = []
    while True:
        for (real,) in loader:
            # The discriminator is to tell real images from those of the generator.
            discriminator.zero_grad()
            label = torch.full((real.size(0),), 1.0, dtype=real.dtype, device=real.device)
            error_real = criterion(discriminator(real), label)
            error_real.backward()
            noise = torch.randn(real.size(0), LATENT, 1, 1, device=real.device)
            fake = generator(noise)
            label.fill_(0.0)
            error_fake = criterion(discriminator(fake.detach()), label)
            error_fake.backward()
            optimizer_d.step()

            # The generator is to make images that the discriminator takes for real ones.
            generator.zero_grad()
            label.fill_(1.0)
            error_g = criterion(discriminator(fake), label)
            error_g.backward()
            optimizer_g.step()
            losses.append((error_real + error_fake + error_g).item())
            if len(losses) == steps:
                return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    generator, discriminator = build()
    print(f"loss of both: {train(generator, discriminator, steps=320)[-1]:.2f}")
    generator.eval()
    with torch.no_grad():
        for image in generator(torch.randn(2, LATENT, 1, 1)).squeeze(1):
            print("\n".join("".join(" .:*#"[int(2.49 * (x + 1))] for x in row) for row in image.tolist()))
