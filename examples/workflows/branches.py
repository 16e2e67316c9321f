"""Branches side by side, and a join that waits for both.

OPENAI_BASE_URL=... python branches.py "Shall we move to four days a week?"
"""

import sys

from agentloom import Workflow

graph = Workflow("branches")
graph.step("question", fn=lambda state: state.input.strip())
graph.step("pro", model="gpt-4o", prompt="One reason for it: {question}", after="question")
graph.step("contra", model="gpt-4o", prompt="One reason against it: {question}", after="question")


@graph.step("both", after=["pro", "contra"])
def both(state):
    return {"pro": state.pro, "contra": state.contra}


graph.step("decide", model="gpt-4o", prompt="Decide. For: {pro} Against: {contra}")

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "Shall we move to four days a week?")
    print(trace.output)
    print(trace.replay())
