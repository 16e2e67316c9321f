"""Workload W through other recorders, each in an environment of its own, beside agentloom: ``__main__`` says how."""
