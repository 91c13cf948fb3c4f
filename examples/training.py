"""Training under a progress bar, and the comparison of a minibatch with the plain per-example loop.

Works for any loss that is written for one example; the examples' models import it. Invariant: whatever is printed as a
time excludes the first call, which compiles and is printed apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import batching
import spmd

Parameters = dict[str, np.ndarray]


def fit(
    mean_loss: Callable[..., Any],
    parameters: Parameters,
    optimiser: Any,
    loader: batching.Loader,
    epochs: int,
    judge: Callable[[Parameters], str],
) -> Parameters:
    """Runs `epochs` passes of `loader`; prints each one's mean loss, trees per second, and what `judge` says."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    step = spmd.value_and_grad(mean_loss)
    state = optimiser.init(parameters)
    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    first_call = 0.0
    with bar:
        work = bar.add_task("compiling", total=epochs * len(loader))
        for epoch in range(1, epochs + 1):
            total, trees, counted, spent = 0.0, 0, 0, 0.0
            for minibatch in loader:
                start = time.perf_counter()
                value, gradient = step(parameters, *minibatch)
                parameters, state = optimiser.step(parameters, gradient, state)
                took = time.perf_counter() - start
                size = len(minibatch[0])
                total, trees = total + float(value) * size, trees + size
                if first_call == 0.0:
                    first_call = took
                else:
                    counted, spent = counted + size, spent + took
                bar.update(work, advance=1, description=f"epoch {epoch}  loss {total / trees:.3f}")
            rate = counted / spent if spent else 0.0
            line = f"epoch {epoch}: loss {total / trees:.4f}, {rate:.0f} trees/s, {judge(parameters)}"
            bar.console.print(line, soft_wrap=True, highlight=False)
    print(f"first call, with compilation: {first_call:.2f} s")
    return parameters


def compare_with_loop(
    loss: Callable[..., Any],
    losses: Callable[..., Any],
    mean_loss: Callable[..., Any],
    parameters: Parameters,
    minibatch: Sequence[Any],
    examples: Sequence[tuple[Any, ...]],
    seed: int,
) -> None:
    """Prints how far the batched loss and gradients are from the loop over `examples`, and how much faster they are.

    The losses of the loop are the user's own function run by Python. NumPy has no gradients, so the loop's are those of
    one example at a time; to have them checked by something that knows no derivative rule, the slope of the plain loss
    in a random direction is measured too, in float64.
    """
    by_one, step = spmd.value_and_grad(loss), spmd.value_and_grad(mean_loss)
    values, _ = timed(lambda: losses(parameters, *minibatch))
    plain, plain_s = timed(lambda: [loss(parameters, *example) for example in examples], runs=1)
    _, batched_s = timed(lambda: losses(parameters, *minibatch))
    print(f"\nthe same {len(examples)} trees through the plain loop")
    print(f"  loss: largest difference {np.max(np.abs(values - np.array(plain))):.1e} of {np.max(plain):.3f}")
    by_one(parameters, *examples[0])
    single, single_s = timed(lambda: [by_one(parameters, *example)[1] for example in examples], runs=1)
    step(parameters, *minibatch)
    (_, gradient), step_s = timed(lambda: step(parameters, *minibatch))
    for name in parameters:
        mean = sum(g[name] for g in single) / len(examples)
        difference, largest = np.max(np.abs(gradient[name] - mean)), np.max(np.abs(mean))
        print(f"  gradient of {name}: largest difference {difference:.1e} of {largest:.1e}")
    measured, computed = slopes(loss, parameters, gradient, examples, seed)
    print(f"  slope in a random direction: {measured:.6f} by the plain loss, {computed:.6f} by the gradient")
    print(
        f"  losses: {plain_s * 1e3:.0f} ms by the loop, {batched_s * 1e3:.1f} ms batched: {plain_s / batched_s:.0f} x"
    )
    print(f"  gradients: {single_s * 1e3:.0f} ms one by one, {step_s * 1e3:.1f} ms batched: {single_s / step_s:.0f} x")


def slopes(
    loss: Callable[..., Any],
    parameters: Parameters,
    gradient: Parameters,
    examples: Sequence[tuple[Any, ...]],
    seed: int,
    step: float = 1e-5,
) -> tuple[float, float]:
    """Slope of the mean loss in one random direction: by a central difference of plain Python, and by the gradient."""
    rng = np.random.default_rng(seed)
    direction = {name: rng.standard_normal(value.shape) for name, value in parameters.items()}
    ahead = {name: value + step * direction[name] for name, value in parameters.items()}
    behind = {name: value - step * direction[name] for name, value in parameters.items()}
    measured = sum(float(loss(ahead, *e) - loss(behind, *e)) for e in examples) / (2 * step * len(examples))
    return measured, sum(float(np.sum(direction[name] * gradient[name])) for name in parameters)


def timed(run: Callable[[], Any], runs: int = 3) -> tuple[Any, float]:
    """The result of `run` and the shortest of `runs` times."""
    shortest = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        result = run()
        shortest = min(shortest, time.perf_counter() - start)
    return result, shortest
