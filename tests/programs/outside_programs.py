"""All programs from outside, by name."""

from __future__ import annotations

import outside_machines
import outside_other_hands
import outside_points
import outside_recurrences
import outside_searches
import outside_solvers
from outside_program import Outside

OUTSIDE: dict[str, Outside] = {
    program.name: program
    for part in (
        outside_solvers, outside_recurrences, outside_points, outside_machines, outside_searches, outside_other_hands,
    )
    for program in part.PROGRAMS
}
