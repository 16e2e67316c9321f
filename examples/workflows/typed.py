"""A typed output: the answer is a ticket or it is sent back with what is wrong, twice at most.

OPENAI_BASE_URL=... python typed.py "I was charged twice!"
"""

import sys
from typing import Literal

from pydantic import BaseModel, Field

from agentloom import Workflow, goto


class Ticket(BaseModel):
    team: Literal["billing", "technical", "other"]
    urgent: bool
    summary: str = Field(description="one sentence", max_length=120)


graph = Workflow("typed")
graph.step("ticket", model="gpt-4o", prompt="Make a ticket of this mail: {input}", output=Ticket, repair=2)


@graph.step("route")
def route(state):
    return goto("person" if state.ticket.urgent else "queue")  # a Ticket, not a text


graph.step("person", fn=lambda state: f"call somebody of {state.ticket.team}", after="route")
graph.step("queue", fn=lambda state: f"queued for {state.ticket.team}: {state.ticket.summary}", after="route")

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "I was charged twice!")
    print(trace.output)
    print(trace.replay())
