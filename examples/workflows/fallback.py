"""Fallback models: the second is asked when the first is down, or cannot answer.

OPENAI_BASE_URL=... ANTHROPIC_BASE_URL=... python fallback.py "Why is the sky blue?"
"""

import sys

from agentloom import Retry, Workflow

graph = Workflow("fallback")
graph.step("answer", model=["gpt-4o", "claude-haiku-4-5"], retry=Retry(attempts=2, delay=0.2))

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "Why is the sky blue?")
    print(trace.output)
    print(trace.replay())
