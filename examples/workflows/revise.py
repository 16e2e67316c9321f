"""A loop with a bound: a draft is revised until it is short enough, three times at most.

OPENAI_BASE_URL=... python revise.py "the sea"
"""

import sys

from agentloom import Workflow, goto

ROUNDS = 3


def wish(state):
    if state.visit == 1:
        return f"A slogan about {state.input}."
    return f"Shorter, please: {state.draft} ({state.check})"  # both of the visit before


graph = Workflow("revise")
graph.step("draft", model="gpt-4o", prompt=wish)


@graph.step("check", loop={"draft": ROUNDS})
def check(state):
    words = len(state.draft.split())
    if words > 5 and state.visit <= ROUNDS:
        return goto("draft", f"{words} words")
    return "short enough" if words <= 5 else "the best that we have"


graph.step("print", fn=lambda state: f"{state.draft} ({state.check})")

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "the sea")
    print(trace.output)
    print(trace.replay())
