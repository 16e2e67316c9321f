"""An agent on the openai SDK, with a tool and a streamed last answer. It knows nothing of agentloom.

agentloom run examples/sdks/openai_orders.py
agentloom replay last
"""

import json

import openai

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "parameters": {
                "type": "object",
                "properties": {"order": {"type": "integer"}},
                "required": ["order"],
            },
        },
    }
]


def look_up(order: int) -> dict:
    return {"order": order, "total": 40}


def main() -> None:
    client = openai.OpenAI()
    messages = [{"role": "user", "content": "What does order 812 cost?"}]
    answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
    messages.append(answer.choices[0].message.model_dump(exclude_none=True))
    for call in answer.choices[0].message.tool_calls or []:
        result = look_up(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
    for chunk in client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
        print(chunk.choices[0].delta.content or "", end="")
    print()


main()
