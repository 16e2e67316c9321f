"""Benchmarks: ratios measured in one process, each runnable with one command."""
