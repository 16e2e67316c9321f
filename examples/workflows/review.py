"""An adversary: it is given the draft and the rules, and nothing of how the draft came about.

OPENAI_BASE_URL=... python review.py "Can I have my money back?"
"""

import sys

from agentloom import Workflow, goto

RULES = "Promise no money. Name no customer."

graph = Workflow("review")
graph.step("rules", fn=lambda state: RULES)
graph.step("draft", model="gpt-4o", prompt="Answer kindly: {input}")
graph.verify(
    "judge",
    inputs=["rules", "draft"],  # not the input, not the history: a child run that shares no context
    model="gpt-4o-mini",
    prompt="Rules: {rules}\nText: {draft}\nIs a rule broken? Answer yes or no.",
)
graph.step("decide", fn=lambda state: goto("hold" if "yes" in state.judge.lower() else "send"))
graph.step("hold", fn=lambda state: "a person looks at it", after="decide")
graph.step("send", fn=lambda state: state.draft, after="decide")

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "Can I have my money back?")
    print(trace.output)
    print(trace.replay())
