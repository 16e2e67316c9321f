"""A drawing of a workflow, and one of the way that a run went. Put the text into any Mermaid viewer.

OPENAI_BASE_URL=... python draw.py > run.mmd
"""

import sys

from agentloom import Workflow, goto

graph = Workflow("draw")
graph.step("guess", model="gpt-4o", prompt=lambda state: f"A number from 1 to 6. Try {state.visit}.")
graph.step(
    "check",
    fn=lambda state: goto("guess") if "6" not in state.guess and state.visit <= 2 else goto("end"),
    loop={"guess": 2},
)
graph.step("celebrate", fn=lambda state: "hooray")
graph.step("end", fn=lambda state: state.guess, after=["celebrate", "check"])

if __name__ == "__main__":
    trace = graph.run("")
    print(graph.draw(run=trace))
    print(trace.replay(), file=sys.stderr)
