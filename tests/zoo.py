"""The zoo: small single-example programs with sample inputs, which every stage's tests use.

The invariant: each is a plain Python function that runs on one example as it stands; its examples diverge, and the
first ones are the extremes (loops of no trip, trees of one node, a NaN).
"""

from __future__ import annotations

import zoo_arrays
import zoo_children
import zoo_classes
import zoo_exceptions
import zoo_functions
import zoo_guards
import zoo_jumps
import zoo_library
import zoo_lists
import zoo_loops
import zoo_records
import zoo_recursion
import zoo_scalars
import zoo_sequences
import zoo_strings
import zoo_trees
import zoo_writes
import zoo_writing_functions
from program import Program

ZOO: dict[str, Program] = {
    program.name: program
    for part in (
        zoo_scalars, zoo_loops, zoo_jumps, zoo_recursion, zoo_trees, zoo_children, zoo_guards, zoo_records, zoo_arrays,
        zoo_sequences, zoo_library, zoo_lists, zoo_strings, zoo_writes, zoo_functions, zoo_exceptions, zoo_classes,
        zoo_writing_functions,
    )
    for program in part.zoo.programs
}
