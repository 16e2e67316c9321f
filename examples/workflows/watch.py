"""Watch a run while it goes on; what is watched is recorded as if nobody watched.

OPENAI_BASE_URL=... python watch.py "tea"
"""

import asyncio
import sys

from agentloom import Workflow
from agentloom.events import Finished, StepFinished, StepStarted

graph = Workflow("watch")
graph.step("one", model="gpt-4o", prompt="A word that rhymes with {input}.")
graph.step("two", model="gpt-4o", prompt="A word for {input}.", after=())
graph.step("line", fn=lambda state: f"{state.one} / {state.two}", after=["one", "two"])


async def main(given):
    async with graph.stream(given) as events:  # leaving the block early would cancel the run
        async for event in events:
            if isinstance(event, StepStarted):
                print(f"{event.step} ...")
            if isinstance(event, StepFinished):
                print(f"{event.step}: {event.value}")
            if isinstance(event, Finished):
                return event.trace
    raise RuntimeError("the run did not end")


if __name__ == "__main__":
    trace = asyncio.run(main(" ".join(sys.argv[1:]) or "tea"))
    print(trace.replay())
