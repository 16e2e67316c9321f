"""The limits of format version 1 (docs/trace-format.md, Limits). Units are in the names or the comments."""

from __future__ import annotations

LINE_BYTES = 16 * 1024 * 1024  # one line, without its newline
DEPTH = 200  # nested arrays and objects in one value
LINE_DEPTH = 210  # nested arrays and objects in one line: a value and what a writer wraps around its parts
INT_DIGITS = 100_000  # decimal digits of one integer
INT_BITS = 332_193  # the largest bit length that INT_DIGITS digits can have
CALL_BYTES = 65_536  # one call id
PATH_BYTES = CALL_BYTES - 64  # its path: room for the counter and the attempt
ENTRIES = 2**53  # sequence numbers stay exact in every JSON reader
PART_BYTES = 1024 * 1024  # decoded bytes of one `bytes` blob
EXPANDED_BYTES = 1024 * 1024 * 1024  # weight of one payload with every reference replaced
UNFOLDED_FREE = 64 * 1024 * 1024  # what a payload may weigh in any file; above it, in proportion to the file:
UNFOLDED_RATIO = 16
INT_MIN = -(2**63)  # integers outside INT_MIN..INT_MAX are written as {"$int": ...}
INT_MAX = 2**64 - 1

APART_BYTES = 1024  # a writer stores strings, lists and mappings of this size as blobs of their own
INDEX_EVERY = 4096  # entries between two index entries
