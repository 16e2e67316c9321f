"""An async agent on the openai SDK: three questions at once, the first answers streamed as they come.

agentloom run examples/scripts/research.py -- tides moon harvest
"""

import asyncio
import json
import sys

from openai import AsyncOpenAI

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
]
FACTS = {"tides": "Tides follow the moon.", "moon": "The moon is 384,400 km away."}


async def search(query):
    await asyncio.sleep(0.01)
    return FACTS.get(query, "nothing found")


async def research(client, topic):
    messages = [{"role": "user", "content": f"What about {topic}?"}]
    answer = await client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS)
    message = answer.choices[0].message
    if not message.tool_calls:
        return f"{topic}: {message.content}"
    messages.append(message.to_dict())
    for call in message.tool_calls:
        found = await search(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
    text = ""
    async with await client.chat.completions.create(
        model="gpt-4o-mini", messages=messages, stream=True
    ) as chunks:
        async for chunk in chunks:
            text += chunk.choices[0].delta.content or "" if chunk.choices else ""
    return f"{topic}: {text}"


async def main():
    async with AsyncOpenAI() as client:
        tasks = [asyncio.create_task(research(client, topic)) for topic in sys.argv[1:]]
        for done in asyncio.as_completed(tasks):
            print(await done)


if __name__ == "__main__":
    asyncio.run(main())
