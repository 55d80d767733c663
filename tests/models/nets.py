"""The networks of this package as torch has them, and others that cannot be trained here."""

import pytest

from raydp_sim.errors import InputError
from raydp_sim.models.torch_module import loaded

try:
    torch = loaded()
except InputError:
    pytest.skip("torch is not installed (extra `learn`)", allow_module_level=True)

from torch import nn  # only where there is torch
from torch.nn.functional import max_pool2d


class Cnn(nn.Module):
    def __init__(self, filters=16, activation="tanh", classes=10, channels=1, units=16):
        super().__init__()
        self.bend = getattr(torch, activation)
        self.conv1 = nn.Conv2d(channels, 16, 8, stride=2, padding=3)
        self.conv2 = nn.Conv2d(16, filters, 4, stride=2)
        self.fc1 = nn.Linear(filters * units, 32)
        self.fc2 = nn.Linear(32, classes)

    def forward(self, x):
        x = max_pool2d(self.bend(self.conv1(x)), 2, stride=1)
        x = max_pool2d(self.bend(self.conv2(x)), 2, stride=1)
        return self.fc2(self.bend(self.fc1(x.flatten(1))))


class LeNet5(nn.Module):
    def __init__(self, activation="relu", classes=10):
        super().__init__()
        self.bend = getattr(torch, activation)
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2 = nn.Linear(256, 120), nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = max_pool2d(self.bend(self.conv1(x)), 2)
        x = max_pool2d(self.bend(self.conv2(x)), 2)
        return self.fc3(self.bend(self.fc2(self.bend(self.fc1(x.flatten(1))))))


class Mlp(nn.Sequential):
    """Widths at which torch's products depend on alignment, unless told otherwise."""

    def __init__(self, *extra, width=784, classes=3):
        super().__init__(
            nn.Flatten(), nn.Linear(width, 37), *extra, nn.Tanh(), nn.Linear(37, classes)
        )


class Normed(Mlp):
    def __init__(self):
        super().__init__(nn.BatchNorm1d(37, track_running_stats=False))


class Dropping(Mlp):
    def __init__(self, p=0.5):
        super().__init__(nn.Dropout(p))


class Buffered(Mlp):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))


class Tied(Mlp):
    def __init__(self):
        super().__init__()
        self.again = self[1]


class Random(Mlp):
    def forward(self, x):
        return super().forward(x + torch.rand_like(x))


class Detached(Mlp):
    def forward(self, x):
        return torch.tensor(super().forward(x).detach().numpy())
