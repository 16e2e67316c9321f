"""The trace format: pure functions between bytes and values. No I/O, no clock, no randomness (docs/trace-format.md)."""
