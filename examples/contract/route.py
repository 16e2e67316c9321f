"""The smallest workflow: a model step, a deterministic step, a model step of another provider.

OPENAI_BASE_URL=... ANTHROPIC_BASE_URL=... python route.py "I was charged twice"
"""

import sys

from agentloom import Workflow

CALLS = 0
URGENT = ("charged", "refund", "broken")


def route_intent(state):
    global CALLS
    CALLS += 1
    text = state["classify"].lower()
    return "human" if any(word in text for word in URGENT) else "bot"


graph = Workflow()
graph.step("classify", model="gpt-4o", temperature=0)
graph.step("route", fn=route_intent)  # deterministic
graph.step("respond", model="claude-haiku-4-5")

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "I was charged twice", seed=42)
    print(trace.output)
    trace.replay()  # bit for bit on every deterministic edge
    print(f"route_intent ran {CALLS} times: once live, once on replay")
