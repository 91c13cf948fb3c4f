"""Engines: how regions of the IR become running code.

Invariant: an engine reads IR and analyses and returns something callable; it never looks at a user's function.
Must not know transforms, the compiler's pipelines or packed data.
"""
