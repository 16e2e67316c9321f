"""What the store's tests share."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("agentloom.testing.store_contract")
