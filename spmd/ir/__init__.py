"""The intermediate representation: one example, structured, pure SSA, typed, with source spans.

`types` says what a value is, `core` holds values, ops, blocks, functions and modules, `build` inserts ops,
`printer` and `parser` are inverse of each other, `verify` states what holds between any two passes,
`rewrite` walks and clones. Nothing here knows of lanes, masks or frames.
"""
