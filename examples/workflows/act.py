"""A tool and an agent as steps: their parameters come from the state, by name or as args= says.

OPENAI_BASE_URL=... python act.py 812
"""

import sys

from agentloom import Workflow, agent, model, tool

PAID = []


@tool(effect="read")
def look_up(order):
    return {"order": order, "total": 40, "customer": "Ada"}


@tool(effect="write")
def refund(order, amount):
    PAID.append((order, amount))
    return f"refunded {amount} for order {order}"


@agent
async def mail_writer(customer, news):
    answer = await model("gpt-4o", f"Write to {customer}: {news}")
    return answer.text


graph = Workflow("act")
graph.step("order", fn=lambda state: int(state.input))
graph.step("found", tool=look_up)  # its parameter `order` is the step of that name
graph.step("paid", tool=refund, args=lambda state: {"order": state.order, "amount": state.found["total"]})
graph.step("mail", agent=mail_writer, args={"customer": "Ada", "news": "{paid}"})

if __name__ == "__main__":
    trace = graph.run(" ".join(sys.argv[1:]) or "812")
    print(trace.output)
    print(trace.replay())
    print(f"refunded {len(PAID)} time")
