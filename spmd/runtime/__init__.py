"""What compiled code needs while it runs: frames, queues, the schedule log, faults, arenas and ragged values.

Nothing here knows the compiler: no types, no ops, no regions, only rows, columns and numbered code.
"""
