"""A step for each item of a list, four at a time; the results stand in the order of the items.

OPENAI_BASE_URL=... python each.py "sea, hills, a train"
"""

import sys

from agentloom import Workflow

graph = Workflow("each")
graph.step("topics", fn=lambda state: [topic.strip() for topic in state.input.split(",")])
graph.step("lines", model="gpt-4o", each="topics", limit=4, prompt="Line {index} of a poem, about {item}.")
graph.step("poem", fn=lambda state: "\n".join(state.lines))

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "sea, hills, a train")
    print(trace.output)
    print(trace.replay())
