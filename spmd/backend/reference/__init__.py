"""The target that defines what a program means: it interprets the structured IR, one example at a time."""
