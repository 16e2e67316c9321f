"""A retry policy: a provider that is busy, and a page that does not answer, are asked again; every wait is recorded.

OPENAI_BASE_URL=... python again.py "the harbour at night"
"""

import sys

from agentloom import Retry, Workflow, tool

BUSY = Retry(attempts=4, delay=0.5, longest=30)  # what may pass: rate limits, overload, broken connections
SHAKY = Retry(attempts=3, delay=0.2, on=ConnectionError)  # a tool says itself after which errors


@tool(effect="read")
async def weather(place: str) -> str:
    """Stands for a service that answers now and then."""
    weather.asked = getattr(weather, "asked", 0) + 1
    if weather.asked % 2:
        raise ConnectionError(f"no weather for {place} this time")
    return "rain"


graph = Workflow("again")
graph.step("weather", tool=weather, args={"place": "{input}"}, retry=SHAKY)
graph.step("line", model="gpt-4o", prompt="One line about {input} in the {weather}.", retry=BUSY, timeout=20)

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "the harbour at night")
    print(trace.output)
    print(trace.replay())  # the same attempts, without waiting
