"""From a Python function to typed IR of one example.

`read` finds the tree, `fence` refuses what no stage could take, `liveness` says which names matter where, `values`
are what names are bound to while lowering, `joins` merge them where paths meet, `names` resolves what a function
captures, and `specialise` with `statements`, `loops`, `expressions`, `calls`, `subscripts`, `comprehensions` lowers a
function for the types of its arguments, by abstract interpretation. Imports go down; the rules that contain themselves
(an expression's parts, a loop's body, a method's method) are reached by the `Lowering`. Nothing here knows of lanes or
targets.
"""
