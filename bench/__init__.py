"""Figures, not tests: `python bench/run.py CASE` measures the compiler beside other tools. See README.md here."""
