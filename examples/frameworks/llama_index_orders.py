"""LlamaIndex: a workflow whose step asks an index and an agent with a tool."""

import asyncio
import os

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.schema import TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai_like import OpenAILike


def look_up(order: int) -> str:
    """What an order is."""
    print("looking up", order)
    return f"order {order}: $40.00"


class Support(Workflow):
    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        terms = VectorStoreIndex([TextNode(id_="terms", text="30 days")], embed_model=MockEmbedding(4))
        found = await terms.as_retriever().aretrieve(event.question)
        llm = OpenAILike(
            model="gpt-4o",
            api_base=os.environ.get("OPENAI_BASE_URL"),
            api_key="unused",
            is_chat_model=True,
            is_function_calling_model=True,
        )
        said = await FunctionAgent(llm=llm, tools=[look_up]).run(f"{event.question} ({found[0].text})")
        return StopEvent(result=str(said))


async def main() -> None:
    print(await Support().run(question="What is order 812?"))


asyncio.run(main())
