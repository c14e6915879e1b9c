"""A convolutional network that learns to read digits, with a data loader, a scheduler and an evaluation."""

from synthetic import digits

import ftrans.autograd as torch
import ftrans.nn.functional as F
from ftrans import nn
from ftrans.nn import optim
from ftrans.nn.data import DataLoader, TensorDataset
from ftrans.nn.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.norm = nn.BatchNorm2d(16)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 8 * 8, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.norm(self.conv2(x)))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = self.dropout(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def evaluate(model, loader, device):
    model.eval()
    loss = correct = 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            prediction = output.argmax(dim=1, keepdim=True)
            correct += prediction.eq(target.view_as(prediction)).sum().item()
    return loss / len(loader.dataset), correct / len(loader.dataset)


def loader_of(count, seed, shuffle):
    images, labels = digits(count, seed=seed)
    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    return DataLoader(dataset, batch_size=32, shuffle=shuffle)


def build():
    return Net()


def train(model, steps, device="cpu"):
    loader = loader_of(1024, seed=5, shuffle=True)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    losses = []
    while True:
        model.train()
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                return losses
        scheduler.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build().to(device)
    train(model, 96, device)
    loss, accuracy = evaluate(model, loader_of(512, seed=1, shuffle=False), device)
    print(f"test: loss {loss:.3f}, accuracy {accuracy:.1%}")
