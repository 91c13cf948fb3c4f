"""The version, at the lowest floor: cache keys and the command line both read it. Knows nothing else."""

__version__ = "0.1.0"
