"""Seeded minibatches of packed data.

Invariant: the batches of an epoch depend on (seed, epoch number, batch size) alone; every leaf of the data is sliced by
the same indices; data is packed once, a batch costs O(batch).
Must not know: models, training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from batching.keypath import KeyPath, PackingError
from batching.packed import Packed
from batching.packing import pack
from batching.ragged import Ragged
from batching.shapes import DICTS

__all__ = ["Loader"]


class Loader:
    """Minibatches of `data`: a Packed, a Ragged, an array, a list of examples (packed here, once), or a tuple,
    NamedTuple or dict of these, all of one length. A batch has the same containers, each leaf sliced.

    Each iteration is one epoch; with `shuffle` its order is a new permutation drawn from (seed, epoch). `epoch` counts
    the epochs begun. `drop_last` leaves out a last batch that is not full. `progress` shows a bar where the output is a
    terminal. Raises PackingError where lengths differ, ValueError for a batch size below 1.
    """

    def __init__(self, data: Any, batch_size: int, *, shuffle: bool = True, seed: int = 0, drop_last: bool = False,
                 progress: bool = False) -> None:
        if batch_size < 1:
            raise ValueError(f"a batch holds at least 1 example, not {batch_size}")
        sizes: dict[int, KeyPath] = {}
        self.data = _packed(data, KeyPath("data"), sizes)
        if len(sizes) != 1:
            listed = ", ".join(f"{path} has {size}" for size, path in sizes.items()) or "data holds no examples"
            raise PackingError("data", f"the lengths differ: {listed}" if sizes else listed)
        self.examples = next(iter(sizes))
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.drop_last, self.progress = drop_last, progress
        self.epoch = 0

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        full, rest = divmod(self.examples, self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def order(self, epoch: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The order of the examples in an epoch."""
        if not self.shuffle:
            return np.arange(self.examples)
        return np.random.default_rng([self.seed, epoch]).permutation(self.examples)

    def __iter__(self) -> Iterator[Any]:
        epoch = self.epoch
        self.epoch += 1
        batches = self._batches(self.order(epoch))
        return _tracked(batches, len(self), epoch) if self.progress else batches

    def _batches(self, order: np.ndarray[Any, Any]) -> Iterator[Any]:
        for batch in range(len(self)):
            rows = order[batch * self.batch_size:(batch + 1) * self.batch_size]
            yield _sliced(self.data, rows)


def _packed(data: Any, path: KeyPath, sizes: dict[int, KeyPath]) -> Any:
    """The data with its lists packed; notes the length of every leaf."""
    if type(data) is list:
        data = pack(data, name=str(path))
    if isinstance(data, (Packed, Ragged)) or isinstance(data, np.ndarray) and data.ndim:
        sizes.setdefault(len(data), path)
        return data
    if type(data) in DICTS:
        return type(data)((key, _packed(part, path.item(key), sizes)) for key, part in data.items())
    if isinstance(data, tuple):
        parts = [_packed(part, path.item(place), sizes) for place, part in enumerate(data)]
        return tuple(parts) if type(data) is tuple else type(data)._make(parts)  # type: ignore[attr-defined]
    raise PackingError(path, f"a {type(data).__qualname__} cannot be sliced into batches; pass a list of examples, a "
                             "Packed, a Ragged, an array, or a tuple or dict of these")


def _sliced(data: Any, rows: np.ndarray[Any, Any]) -> Any:
    if type(data) in DICTS:
        return type(data)((key, _sliced(part, rows)) for key, part in data.items())
    if isinstance(data, tuple):
        parts = [_sliced(part, rows) for part in data]
        return tuple(parts) if type(data) is tuple else type(data)._make(parts)  # type: ignore[attr-defined]
    return data[rows]


def _tracked(batches: Iterable[Any], count: int, epoch: int) -> Iterator[Any]:
    """The batches under a progress bar; without one where the output is no terminal or rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        yield from batches
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from batches
        return
    yield from track(batches, description=f"epoch {epoch + 1}", total=count, console=console, transient=True)
