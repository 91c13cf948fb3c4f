"""From a call to compiled code: `signature` turns arguments into structure and columns (the only place that meets
`batching`), `trace` runs the front end, `pipelines` lists the passes, `executable` builds and runs, `axes` and `into`
place what a call returns, `cache` finds what was compiled before.
"""
