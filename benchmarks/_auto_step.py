"""A training of steps of some 2 ms: one block of them for each line that is read, and their times as the answer."""

import json
import sys
from itertools import cycle
from time import perf_counter_ns, thread_time_ns

import torch
from torch.utils.data import DataLoader, TensorDataset

STEPS = 50


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    width = int(sys.argv[1])
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(64 * 64, width), torch.randn(64 * 64, 1))
    # Read through again and again by one iterator, as one long epoch.
    loader = DataLoader(data, batch_size=64, sampler=_Endless(len(data)))
    batches = iter(loader)
    losses = 0.0
    for _ in sys.stdin:
        walls, cpus = [], []
        for _ in range(STEPS):
            wall, cpu = perf_counter_ns(), thread_time_ns()
            inputs, targets = next(batches)
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            cpus.append(thread_time_ns() - cpu)
            walls.append(perf_counter_ns() - wall)
            losses += float(loss)
        print(json.dumps({"wall_us": [n / 1e3 for n in walls], "cpu_us": [n / 1e3 for n in cpus], "loss": losses}))
        sys.stdout.flush()


class _Endless(torch.utils.data.Sampler[int]):
    def __init__(self, number: int) -> None:
        self._number = number

    def __iter__(self):  # type: ignore[no-untyped-def]
        return cycle(range(self._number))


if __name__ == "__main__":
    main()
