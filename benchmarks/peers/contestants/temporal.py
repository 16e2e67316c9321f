"""Temporal's replayer over a history made here: to record one takes its server, which is no library."""

from __future__ import annotations

import asyncio
import importlib
import json
from datetime import timedelta
from typing import Any

from benchmarks.agent import workload
from benchmarks.agent.workload import Message
from benchmarks.peers.contestants.base import Contestant, typed

__all__ = ["History"]

_workflow: Any = importlib.import_module("temporalio.workflow")
_worker: Any = importlib.import_module("temporalio.worker")
_client: Any = importlib.import_module("temporalio.client")
_converter: Any = importlib.import_module("temporalio.converter")
_events: Any = importlib.import_module("temporalio.api.history.v1")
_enums: Any = importlib.import_module("temporalio.api.enums.v1")
_common: Any = importlib.import_module("temporalio.api.common.v1")

_LIMIT = timedelta(seconds=10)
_edit: list[int | None] = [None]


async def _activity(name: str, number: int, *arguments: Any) -> Any:
    return await _workflow.execute_activity(
        name, args=list(arguments), start_to_close_timeout=_LIMIT, activity_id=str(number)
    )


@typed(_workflow.defn(name="W"))
class _W:
    @typed(_workflow.run)
    async def run(self, turns: int) -> int:
        messages = workload.start()
        for turn in range(turns):
            if turn == _edit[0]:
                messages.append({"role": "user", "content": "CHANGED PROMPT"})
            answer = await _activity("model", 2 * turn + 1, messages)
            messages.append(answer)
            call = answer["tool_calls"][0]
            arguments = json.loads(call["function"]["arguments"])
            result = await _activity("tool", 2 * turn + 2, arguments["q"], arguments["n"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
        return len(messages)


class _Writer:
    """The events that Temporal's server keeps of a workflow whose activities run one after the other."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.activities = 0
        self.to_payloads: Any = _converter.DataConverter.default.payload_converter.to_payloads

    def payloads(self, *values: Any) -> Any:
        return _common.Payloads(payloads=self.to_payloads(values))

    def add(self, kind: str) -> tuple[Any, int]:
        """A new event's attributes, and its number."""
        number = len(self.events) + 1
        event = _events.HistoryEvent(
            event_id=number, event_type=getattr(_enums.EventType, f"EVENT_TYPE_{kind}")
        )
        event.event_time.FromSeconds(1_700_000_000 + number)
        self.events.append(event)
        attributes = getattr(event, f"{kind.lower()}_event_attributes")
        attributes.SetInParent()
        return attributes, number

    def start(self, turns: int) -> None:
        started, _ = self.add("WORKFLOW_EXECUTION_STARTED")
        started.workflow_type.name, started.task_queue.name, started.workflow_id = "W", "q", "w"
        started.original_execution_run_id = started.first_execution_run_id = "r"
        started.attempt = 1
        started.workflow_task_timeout.FromSeconds(10)
        started.input.CopyFrom(self.payloads(turns))

    def task(self) -> int:
        """A workflow task; the number of its completion."""
        scheduled, first = self.add("WORKFLOW_TASK_SCHEDULED")
        scheduled.task_queue.name, scheduled.attempt = "q", 1
        started, second = self.add("WORKFLOW_TASK_STARTED")
        started.scheduled_event_id = first
        completed, number = self.add("WORKFLOW_TASK_COMPLETED")
        completed.scheduled_event_id, completed.started_event_id = first, second
        if number < 6:
            completed.sdk_metadata.core_used_flags.extend([1, 2, 3])
        return number

    def activity(self, name: str, result: Any, *arguments: Any) -> None:
        after = self.task()
        self.activities += 1
        scheduled, first = self.add("ACTIVITY_TASK_SCHEDULED")
        scheduled.activity_id, scheduled.activity_type.name = str(self.activities), name
        scheduled.task_queue.name, scheduled.workflow_task_completed_event_id = "q", after
        scheduled.input.CopyFrom(self.payloads(*arguments))
        scheduled.start_to_close_timeout.FromSeconds(10)
        started, second = self.add("ACTIVITY_TASK_STARTED")
        started.scheduled_event_id, started.attempt = first, 1
        completed, _ = self.add("ACTIVITY_TASK_COMPLETED")
        completed.scheduled_event_id, completed.started_event_id = first, second
        completed.result.CopyFrom(self.payloads(result))

    def end(self, result: int) -> None:
        after = self.task()
        completed, _ = self.add("WORKFLOW_EXECUTION_COMPLETED")
        completed.workflow_task_completed_event_id = after
        completed.result.CopyFrom(self.payloads(result))


class History(Contestant):
    """``Replayer`` without the sandbox, the faster of its two ways."""

    records = False

    def record(self, turns: int) -> int:
        """Not a recording: makes the history that a server would have kept."""
        writer = _Writer()
        writer.start(turns)

        def ask(messages: list[Message]) -> Message:
            answer = workload.model(messages)
            writer.activity("model", answer, messages)
            return answer

        def use(q: str, n: int) -> dict[str, Any]:
            result = workload.tool(q, n)
            writer.activity("tool", result, q, n)
            return result

        length = len(workload.loop(ask, use, turns))
        writer.end(length)
        self.events = writer.events
        return length

    def replay(self, turns: int, edited_at: int | None = None) -> None:
        _edit[0] = edited_at
        replayer = _worker.Replayer(workflows=[_W], workflow_runner=_worker.UnsandboxedWorkflowRunner())
        try:
            asyncio.run(replayer.replay_workflow(_client.WorkflowHistory("w", list(self.events))))
        finally:
            _edit[0] = None

    def size(self) -> int:
        return len(_events.History(events=self.events).SerializeToString())
