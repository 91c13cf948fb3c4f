"""Names the place of a value inside the examples, as code that reads it (`trees[3].left.word`).

Invariant: a key path is an immutable chain from the value up to its root, so that extending one costs O(1) and shares
the rest; text is made only when an error needs it.
Must not know: what the values are or how they are packed.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KeyPath", "PackingError"]

SHOWN_STEPS = 8


@dataclass(frozen=True, slots=True)
class KeyPath:
    """One step of a path: `text` is appended to what `parent` prints."""

    text: str
    parent: KeyPath | None = None

    def attribute(self, name: str) -> KeyPath:
        """The path of attribute `name` of the value here."""
        return KeyPath(f".{name}", self)

    def item(self, key: object) -> KeyPath:
        """The path of element or dictionary entry `key` of the value here."""
        return KeyPath(f"[{key!r}]", self)

    def anywhere(self) -> KeyPath:
        """The path of some element of the list here, where its index is not known."""
        return KeyPath("[...]", self)

    def rooted(self, root: str) -> str:
        """The text of this path with its root's name replaced by `root`."""
        texts: list[str] = []
        step: KeyPath | None = self
        while step is not None:
            texts.append(step.text if step.parent is not None else root)
            step = step.parent
        texts.reverse()
        if len(texts) > 2 * SHOWN_STEPS:
            texts[SHOWN_STEPS:-SHOWN_STEPS] = [f" ... ({len(texts) - 2 * SHOWN_STEPS} steps) ... "]
        return "".join(texts)

    def __str__(self) -> str:
        root = self
        while root.parent is not None:
            root = root.parent
        return self.rooted(root.text)


class PackingError(ValueError):
    """Data that cannot be packed, or columns that do not belong together.

    `path` is the key path of the offending value, printed as code.
    """

    def __init__(self, path: KeyPath | str, message: str) -> None:
        self.path = str(path)
        super().__init__(f"{self.path}: {message}")
