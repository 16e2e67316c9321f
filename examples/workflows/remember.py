"""Recorded memory: what one run puts, a later one gets. A replay gets what was there then, and writes nothing.

OPENAI_BASE_URL=... python remember.py "I am Ann, and I like short answers."
"""

import sys

from agentloom import Workflow, memory

graph = Workflow("remember")


@graph.step
async def known(_state):
    return await memory.get("about") or []


graph.step("answer", model="gpt-4o", prompt="You know this of me: {known}. {input}")


@graph.step
async def keep(state):
    await memory.put("about", [*state.known, state.input])
    return len(await memory.search("ann"))


graph.step("end", fn=lambda state: state.answer)

if __name__ == "__main__":
    for said in sys.argv[1:] or ["I am Ann, and I like short answers.", "Who am I?"]:
        trace = graph.run(said)
        print(trace.output)
        print(trace.replay())
