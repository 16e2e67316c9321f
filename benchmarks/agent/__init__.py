"""The agents that the benchmarks run, apart from what measures them: a trace keeps its agent's own sources."""
