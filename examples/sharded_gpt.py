"""The small GPT of char_gpt.py, fully sharded over eight devices, of one process and of two, beside one device.

Each device holds an eighth of the parameters and of the state of the optimizer, and computes with an eighth of each
batch.  The devices are virtual ones of the CPU, so this shows that the losses are the same, and what each device holds,
but not how fast many devices are.

    python examples/sharded_gpt.py
"""

import argparse
import os
import re
import subprocess
import sys
from pydoc_data import topics

import jax
import numpy as np
import optax
from char_gpt import GPT, loss, windows

import ftrans as ft
from ftrans import nn


def text_as_numbers():
    text = "\n".join(topics.topics.values())
    characters = sorted(set(text))
    codes = {character: i for i, character in enumerate(characters)}
    return np.array([codes[character] for character in text]), len(characters)


def train(mesh=None, epochs=4, width=64, layers=2, steps_per_epoch=10):
    """A new model after its training, and the losses of the epochs; on a mesh, or on one device."""
    text, vocabulary = text_as_numbers()
    nn.manual_seed(0)
    model = GPT(vocabulary, width=width, layers=layers)
    optimizer = nn.Optimizer(model, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3)))
    history = nn.fit(
        model,
        nn.batches(*windows(text, step=1), batch_size=16, seed=0),
        loss=loss,
        optimizer=optimizer,
        epochs=epochs,
        steps_per_epoch=steps_per_epoch,
        mesh=mesh,
        rules=None if mesh is None else nn.fsdp("data"),
        progress=False,
    )
    return optimizer, history["loss"]


def bytes_on_first_device(module):
    """Bytes of the arrays of a module, such as an optimizer with its model, that are on the first device of a mesh."""
    parts = [cell.array.addressable_shards[0] for _, cell in module.named_cells()]
    return sum(part.data.nbytes for part in parts)


def in_two_processes(epochs):
    """The losses of the epochs when two processes of four devices each run this script."""
    command = [sys.executable, "-m", "ftrans", "launch", "-n", "2", "--devices", "4", __file__, "--epochs", str(epochs)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [float(text) for text in re.findall(r"\d+\.\d+", said)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()

    index, count = ft.initialize_processes()
    if count > 1:
        _, losses = train(ft.mesh({"data": -1}), epochs=args.epochs)
        if index == 0:
            print(*losses)
        return
    if "JAX_NUM_CPU_DEVICES" not in os.environ:
        jax.config.update("jax_num_cpu_devices", 8)
    mesh = ft.mesh({"data": 8})
    _, alone = train(epochs=args.epochs)
    optimizer, together = train(mesh, epochs=args.epochs)
    divided = in_two_processes(args.epochs)
    print("epoch  loss on one device  on eight  of two processes")
    for epoch, losses in enumerate(zip(alone, together, divided, strict=True), 1):
        print("{:5}  {:18.6f}  {:8.6f}  {:16.6f}".format(epoch, *losses))
    whole = sum(cell.type.nbytes for _, cell in optimizer.named_cells())
    print(
        f"parameters and state of Adam: {whole:,} bytes, of which {bytes_on_first_device(optimizer):,} on each device"
    )


if __name__ == "__main__":
    main()
