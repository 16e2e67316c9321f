"""A deterministic step chooses the way; what it did not choose is in the trace too.

OPENAI_BASE_URL=... python choose.py "I was charged twice"
"""

import sys

from agentloom import Workflow, goto

graph = Workflow("choose")
graph.step("classify", model="gpt-4o", temperature=0, system="Answer with one word: billing or other.")


@graph.step("route", after="classify")
def route(state):
    return goto("person" if "billing" in state.classify.lower() else "robot")


graph.step("robot", model="gpt-4o-mini", prompt="Answer this in one sentence: {input}", after="route")
graph.step("person", fn=lambda state: f"forwarded: {state.input}", after="route")


@graph.step("close", after=["robot", "person"])  # waits for the way that was taken, and for no other
def close(state):
    return state.get("robot") or state.get("person")


if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "I was charged twice")
    print(trace.output)
    print(trace.replay())
