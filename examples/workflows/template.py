"""A prompt in a file of its own. Template and variables are recorded, each by itself.

OPENAI_BASE_URL=... python template.py "Where is my parcel?"
"""

import sys

from agentloom import Workflow

graph = Workflow("template")
graph.step("tone", fn=lambda state: "short and kind")
graph.step("facts", fn=lambda state: ["the parcel left on Monday", "it takes three days"])
graph.step("reply", model="gpt-4o", template="prompts/reply.md")

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "Where is my parcel?")
    print(trace.output)
    print(trace.replay())
