"""Passes over programs for one example: inline, simplify, fission, hoist, cut into regions, adjoint.

No pass sees a mask, a lane or a target; the order of passes is the compiler's business, not theirs.
"""
