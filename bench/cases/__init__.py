"""Workloads, one process each: they print one line of JSON. Run by bench/run.py, which sets their environment."""
