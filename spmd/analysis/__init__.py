"""What is true of a program: effects, call graph, live values, activity. Analyses change nothing and know no target."""
