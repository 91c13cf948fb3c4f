"""Training kit: initial parameters, optimiser steps, clipping, saving and loading, over containers of NumPy arrays.

Everything is a function of explicit state; nothing is kept between calls. It knows nothing of the compiler: gradients
come from ``spmd.value_and_grad`` or from anywhere else.
"""

from spmd.learn.clip import clip_by_global_norm, clip_by_value, global_norm
from spmd.learn.init import glorot, normal, orthogonal, uniform, zeros
from spmd.learn.optim import SGD, Adagrad, Adam
from spmd.learn.params import ParamsError, count, load, map_leaves, save

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "ParamsError",
    "clip_by_global_norm",
    "clip_by_value",
    "count",
    "global_norm",
    "glorot",
    "load",
    "map_leaves",
    "normal",
    "orthogonal",
    "save",
    "uniform",
    "zeros",
]
