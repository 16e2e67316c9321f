"""Keys of growing histories equal their definition, however the hash so far was kept."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agentloom.errors import NotSupported
from agentloom.format.captures import Captures
from agentloom.format.digests import request_key
from agentloom.format.keys import Keys
from agentloom.format.values import Types, encode


@pytest.mark.parametrize("seed", range(40))
def test_a_key_is_that_of_the_whole_request(seed: int) -> None:
    rng = random.Random(seed)
    nonce = rng.randbytes(32)
    captures, keys = Captures(Types()), Keys(nonce)
    lists: dict[str, list[Any]] = {"messages": [], "tools": [1], "a": []}
    for _ in range(15):
        chosen = lists[rng.choice(list(lists))]
        chosen.append(rng.choice([1, True, 1.0, "x", {"b": [1], "a": "y" * 300}]))
        if rng.random() < 0.2:
            chosen[rng.randrange(len(chosen))] = "edited"
        fields: dict[str, Any] = {**lists, "model": "m", "t": rng.choice([0, 0.5])}
        tree, grown = captures.capture(fields, "series")
        assert tree == encode(fields)
        chosen_fields = {name: tree[name] for name in tree if name != "t" or rng.random() < 0.5}
        want = request_key(nonce, "p/1", {"type": "model", "name": "m", "fields": dict(chosen_fields)})
        assert keys.key("p/1", "model", "m", chosen_fields, grown) == want


def test_a_list_that_was_changed_by_whom_it_was_lent_to_has_no_key() -> None:
    captures, keys = Captures(Types()), Keys(bytes(32))
    tree, grown = captures.capture({"messages": [{"role": "user", "text": "hello"}]}, "series")
    before = keys.key("p/1", "model", "m", tree, grown)
    lent = grown["messages"].lend(read_only=True)
    assert keys.key("p/1", "model", "other", tree, grown) != before
    lent[0]["text"] = "goodbye"
    with pytest.raises(NotSupported, match="reads_only"):
        keys.key("p/2", "model", "m", tree, grown)
