"""Data that differs per example, packed into columns.

    packed = batching.pack(trees)          # a list of Python values of any structure
    packed[3], packed[:32]                 # an example again; a minibatch, by index
    batching.unpack(packed)                # the list

What can be packed and how it is laid out: schema.py and columns.py.
"""

from batching.keypath import PackingError
from batching.loader import Loader
from batching.packed import Packed
from batching.packing import pack
from batching.ragged import Ragged
from batching.unpacking import unpack

__all__ = ["Loader", "Packed", "PackingError", "Ragged", "pack", "unpack"]
