"""google-genai, async: two questions at once, over aiohttp where that is installed."""

import asyncio

from google import genai


async def main() -> None:
    async with genai.Client().aio as client:
        answers = await asyncio.gather(
            *(
                client.models.generate_content(
                    model="gemini-2.5-flash", contents=f"What does order {order} cost?"
                )
                for order in (812, 813)
            )
        )
    print([answer.text for answer in answers])


asyncio.run(main())
