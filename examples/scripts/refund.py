"""A refund agent on the openai SDK. Nothing in it knows about agentloom.

python examples/scripts/refund.py "refund order 812"
agentloom run examples/scripts/refund.py -- "refund order 812"
"""

import json
import sys

from openai import OpenAI

SYSTEM = "You handle refunds. Refund when paid."
ORDERS = {812: {"total": 40, "paid": True}}


def lookup_order(order_id):
    return ORDERS.get(order_id, {"error": "unknown order"})


def issue_refund(order_id, amount):
    print(f"refunding {amount} for order {order_id}", file=sys.stderr)
    return "ok"


def function(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [
    function("lookup_order", order_id={"type": "integer"}),
    function("issue_refund", order_id={"type": "integer"}, amount={"type": "number"}),
]


def main():
    client = OpenAI()
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": " ".join(sys.argv[1:])}]
    while True:
        answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
        message = answer.choices[0].message
        if not message.tool_calls:
            print(message.content)
            return
        messages.append(message.to_dict())
        for call in message.tool_calls:
            result = globals()[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


if __name__ == "__main__":
    main()
