"""The public home of a workflow's events."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from agentloom import events
from agentloom.api import workflow_events


@pytest.mark.parametrize("name", events.__all__)
def test_every_event_is_the_one_that_workflows_tell(name: str) -> None:
    assert getattr(events, name) is getattr(workflow_events, name)


@pytest.mark.parametrize("name", sorted({*events.__all__} - {"Finished"}))
def test_events_are_frozen_and_know_their_step(name: str) -> None:
    kind: Any = getattr(events, name)
    event = kind("draft", 2, 1)
    assert (event.step, event.visit, event.item) == ("draft", 2, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.step = "other"


def test_every_kind_of_event_is_public() -> None:
    kinds = {kind.__name__ for kind in workflow_events.Event.__subclasses__()}
    assert kinds | {"Event", "Finished"} == set(events.__all__)
