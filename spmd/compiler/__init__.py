"""From a call to compiled code: `signature` turns arguments into structure and columns (the only place that meets
`batching`), `pipelines` lists the passes, `compile` builds an executable, `executable` runs it, `results` gives back
what a call returns, `cache` finds what was compiled before.
"""
