# mypy: ignore-errors
"""LlamaIndex: a workflow whose parallel steps ask a retriever and an agent with parallel tools, async and sync ones."""

from __future__ import annotations

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.schema import TextNode
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai_like import OpenAILike


async def price(item: str) -> str:
    """The price of an item."""
    return f"{item} costs {len(item)}"


def stock(item: str) -> int:
    """How many there are."""
    return len(item) * 10


class Ask(Event):
    question: str


class Said(Event):
    text: str


class Shop(Workflow):
    def __init__(self, url: str) -> None:
        super().__init__(timeout=60)
        self.llm = OpenAILike(
            model="m", api_base=url, api_key="unused", is_chat_model=True, is_function_calling_model=True
        )
        nodes = [TextNode(id_=name, text=f"about {name}") for name in ("fig", "apple")]
        self.shelf = VectorStoreIndex(nodes, embed_model=MockEmbedding(4)).as_retriever(similarity_top_k=1)

    @step
    async def start(self, context: Context, event: StartEvent) -> Ask | None:
        for part in "abc":
            context.send_event(Ask(question=f"{event.question} {part}"))

    @step(num_workers=3)
    async def ask(self, context: Context, event: Ask) -> Said:
        found = await self.shelf.aretrieve(event.question)
        agent = FunctionAgent(name="seller", llm=self.llm, tools=[price, stock])
        answer = await agent.run(f"{event.question} ({found[0].node.node_id})")
        return Said(text=str(answer))

    @step
    async def gather(self, context: Context, event: Said) -> StopEvent | None:
        found = context.collect_events(event, [Said] * 3)
        return None if found is None else StopEvent(result=[one.text for one in found])


async def agent(url: str, question: str) -> list[str]:
    return await Shop(url).run(question=question)
