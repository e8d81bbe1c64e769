#!/usr/bin/env python3
"""Trains the demo's network on the 8x8 digits that scikit-learn ships, and saves what the demo reads.

usage: train_digits.py     (needs torch and scikit-learn; `make demo` needs neither)
Writes digits.pt2, for 1 to 64 images at a time, digits.npz with held-out images in0, and labels.txt
with one digit for each of them.
"""

import pathlib
import re

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
SHOWN = 60
EPOCHS = 30


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.hidden, self.out = nn.Linear(32 * 4, 64), nn.Linear(64, 10)

    def forward(self, image):
        y = F.max_pool2d(F.relu(self.norm1(self.conv1(image))), 2)
        y = F.max_pool2d(F.relu(self.norm2(self.conv2(y))), 2)
        y = F.relu(self.hidden(torch.flatten(y, 1)))
        return torch.softmax(self.out(F.dropout(y, 0.2, self.training)), dim=1)


def load_data():
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    parts = train_test_split(images, digits.target, test_size=0.25, random_state=0, stratify=digits.target)
    return [torch.from_numpy(part) for part in parts]


def train(model, images, labels):
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(64):
            # Shifts by up to one pixel stand for the many ways to place a digit.
            down, right = torch.randint(-1, 2, (2,)).tolist()
            shifted = torch.roll(images[batch], (down, right), (2, 3))
            loss = -model(shifted).clamp_min(1e-9).log()[torch.arange(len(batch)), labels[batch]].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()


def without_folders(exported):
    """Keeps file names in the recorded stack traces but drops this machine's folders."""
    for node in exported.graph.nodes:
        if node.meta.get("stack_trace"):
            node.meta["stack_trace"] = re.sub(r'File "[^"]*/', 'File "', node.meta["stack_trace"])
    return exported


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the same weights on every machine
    images, held_out, labels, truth = load_data()
    model = DigitNet()
    train(model, images, labels)
    model.eval()
    with torch.no_grad():
        right = (model(held_out).argmax(1) == truth).float().mean().item()
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(model, (held_out[:2],), dynamic_shapes=({0: batch},))
    exported.example_inputs = None
    torch.export.save(without_folders(exported), HERE / "digits.pt2")
    np.savez_compressed(HERE / "digits.npz", in0=held_out[:SHOWN].numpy())
    (HERE / "labels.txt").write_text("".join(str(digit) for digit in truth[:SHOWN].tolist()) + "\n")
    print(f"{sum(p.numel() for p in model.parameters())} weights; {right:.2%} of {len(truth)} held-out digits")


if __name__ == "__main__":
    main()
