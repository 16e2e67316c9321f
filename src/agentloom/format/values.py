"""Values and trees: ``encode`` captures a Python value exactly, ``decode`` gives it back, fresh each time.

This is the whole interface; the work is in ``encoding``, ``decoding``, ``scalars`` and ``failures``.
"""

from __future__ import annotations

from agentloom.format.canonical import Tree
from agentloom.format.declared import Types
from agentloom.format.decoding import decode
from agentloom.format.encoding import encode, encode_apart

__all__ = ["Tree", "Types", "decode", "encode", "encode_apart"]
