"""The checker and the vector makers are files of spec/, not of the package."""

from __future__ import annotations

import sys
from pathlib import Path

SPEC = Path(__file__).parents[2] / "spec"
if str(SPEC) not in sys.path:
    sys.path.insert(0, str(SPEC))
