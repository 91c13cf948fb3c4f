"""Primitives: one record each, a file per family; `table` joins them and maps NumPy's functions to them."""
