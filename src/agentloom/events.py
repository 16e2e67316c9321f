"""What a workflow tells while it runs (``Workflow.stream``)."""

from agentloom.api.workflow_events import (
    Decided,
    Event,
    Finished,
    Retried,
    StepFinished,
    StepSkipped,
    StepStarted,
    Text,
)

__all__ = [
    "Decided",
    "Event",
    "Finished",
    "Retried",
    "StepFinished",
    "StepSkipped",
    "StepStarted",
    "Text",
]
