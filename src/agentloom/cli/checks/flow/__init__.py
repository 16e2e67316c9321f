"""Where values come from and where they go: a simple data flow over the functions of a target.

Each function that runs inside of a run is walked once from top to bottom, with what its parameters are annotated as;
functions of the target that it calls are walked with the values that they are given (``walk``). A value is what kind of
thing it is and the marks that it carries (``values``); marks come from sources (``origins``), go through operations
(``builtin``), and are reported where they reach a sink (``sinks``). What is not known is not reported.
"""
