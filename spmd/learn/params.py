"""Parameters on disk, and what one wants to know of them.

Invariant: a file holds arrays and JSON text only, so that loading runs no code; it appears whole or not at all, and
what is not exactly as it was written is refused. Must not know optimisers or the compiler.
"""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from spmd.learn.leaves import ROOT, children, iterate, map_with_path
from spmd.learn.leaves import map_leaves as map_leaves

_STRUCTURE = "structure.json"
_FORMAT = 1
_KINDS = "biufc"


class ParamsError(ValueError):
    """A file of parameters that cannot be read, or does not fit what it is loaded for."""


def count(params: Any) -> int:
    """Number of numbers in all arrays and scalars of `params`."""
    return sum(int(np.size(leaf)) for _, leaf in iterate(params) if not isinstance(leaf, str))


def save(path: str | os.PathLike[str], params: Any) -> None:
    """Writes `params` to one .npz file: an array by its key path for each leaf, and the structure as JSON.

    Leaves are arrays and NumPy scalars of bool, integer, float or complex type, and Python numbers, str and None. An
    existing file is replaced only when the new one is complete. Raises TypeError, naming the path, for other leaves.
    """
    arrays: dict[str, np.ndarray] = {}
    document = {"format": _FORMAT, "root": _describe(params, ROOT, arrays)}
    target = Path(path)
    handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_STRUCTURE, json.dumps(document))
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)
        os.chmod(partial, 0o666 & ~_umask())  # mkstemp makes it private
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise


def load(path: str | os.PathLike[str], like: Any = None) -> Any:
    """Reads what `save` wrote.

    Without `like`, gives dicts, lists and tuples as they were. With `like`, gives its classes, after checking that key
    paths, shapes and dtypes are the same; dataclasses and NamedTuples need it. Raises ParamsError for a damaged or
    foreign file and for one that does not fit, OSError if there is none.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            document = json.loads(archive.read(_STRUCTURE))
            if document["format"] != _FORMAT:
                raise ParamsError(f"{path} has format {document['format']!r}; this version reads {_FORMAT}")
            root = _restore(document["root"], ROOT, archive, like is not None)
    except ParamsError:
        raise
    except KeyError as error:
        raise ParamsError(f"{path} is not a whole file of parameters: {error.args[0]}") from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        TypeError,
        EOFError,
        OSError,
        struct.error,
        NotImplementedError,
        RecursionError,
    ) as error:
        raise ParamsError(f"{path} is damaged or not a file of parameters: {error}") from None
    return root if like is None else _fit(path, root, like)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _describe(tree: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """The JSON form of a tree: what each node is, with its arrays put into `arrays` under their key paths."""
    if tree is None:
        return {"none": True}
    if isinstance(tree, (np.ndarray, np.generic)):
        if tree.dtype.kind not in _KINDS:
            raise TypeError(f"{path} has dtype {tree.dtype}, which is not a number type that files keep")
        arrays[path] = np.asarray(tree)
        return {"array" if isinstance(tree, np.ndarray) else "scalar": path}
    if type(tree) in (bool, int, str):
        return {"value": tree}
    if type(tree) is float:
        return {"float": tree.hex()}
    if type(tree) is complex:
        return {"complex": [tree.real.hex(), tree.imag.hex()]}
    parts = children(tree)
    if parts is None:
        raise TypeError(f"{path} is a {type(tree).__name__}; files keep arrays, numbers, str and None")
    inner = [_describe(child, path + step, arrays) for step, child in parts]
    if type(tree) in (list, tuple):
        return {type(tree).__name__: inner}
    if isinstance(tree, dict):
        for key in tree:
            if type(key) not in (str, int):
                raise TypeError(f"{path} has the key {key!r}; keys are str or int")
        return {"dict": [[key, part] for key, part in zip(tree, inner, strict=True)]}
    names = [step[1:] for step, _ in parts] if parts and parts[0][0].startswith(".") else []
    return {"class": type(tree).__name__, "fields": [[name, part] for name, part in zip(names, inner, strict=True)]}


class _Fields(dict[str, Any]):
    """Fields of a dataclass or NamedTuple whose class `like` will give."""


def _restore(form: Any, path: str, archive: zipfile.ZipFile, has_like: bool) -> Any:
    kind = next(iter(form))
    value = form[kind]
    if kind == "none":
        return None
    if kind in ("array", "scalar"):
        array = np.lib.format.read_array(io.BytesIO(archive.read(f"{value}.npy")), allow_pickle=False)
        return array if kind == "array" else array[()]
    if kind == "value":
        return value
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(float.fromhex(value[0]), float.fromhex(value[1]))
    if kind in ("list", "tuple"):
        parts = [_restore(part, f"{path}[{i}]", archive, has_like) for i, part in enumerate(value)]
        return parts if kind == "list" else tuple(parts)
    if kind == "dict":
        return {key: _restore(part, f"{path}[{key!r}]", archive, has_like) for key, part in value}
    if kind == "class":
        if not has_like:
            raise ParamsError(f"{path} was a {value}: give load() like=, an object of that structure")
        return _Fields({n: _restore(part, f"{path}.{n}", archive, has_like) for n, part in form["fields"]})
    raise ValueError(f"{path} has the unknown form {kind!r}")


def _paths(tree: Any, path: str = ROOT) -> dict[str, Any]:
    """Leaves by path; None counts, so that a missing leaf does not pass for an empty one."""
    steps = [(f".{n}", child) for n, child in tree.items()] if isinstance(tree, _Fields) else children(tree)
    if steps is None:
        return {path: tree}
    found: dict[str, Any] = {}
    for step, child in steps:
        found.update(_paths(child, path + step))
    return found


def _fit(path: Any, root: Any, like: Any) -> Any:
    """What was read, in the classes of `like`."""
    have, want = _paths(root), _paths(like)
    for name in [*(n for n in want if n not in have), *(n for n in have if n not in want)]:
        raise ParamsError(f"{path} does not fit: {name} is {'missing in' if name in want else 'only in'} the file")
    for name, leaf in want.items():
        if _sort(have[name]) != _sort(leaf):
            raise ParamsError(f"{path} does not fit: {name} is {_sort(have[name])} in the file, {_sort(leaf)} in like")
    return map_with_path(lambda name, _: have[name], like)


def _sort(leaf: Any) -> str:
    if isinstance(leaf, np.ndarray):
        return f"{leaf.dtype}{list(leaf.shape)}"
    return f"a scalar {leaf.dtype}" if isinstance(leaf, np.generic) else type(leaf).__name__
