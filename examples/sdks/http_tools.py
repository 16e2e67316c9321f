"""Plain HTTP of four libraries in one program: each request is an `http` call."""

import asyncio
import os
import urllib.request

import aiohttp
import httpx2
import requests

SHOP = os.environ["SHOP_URL"]


async def two() -> list:
    async with aiohttp.ClientSession() as session, session.get(f"{SHOP}/stock/1") as one:
        async with httpx2.AsyncClient() as client:
            other = await client.get(f"{SHOP}/stock/2")
        return [await one.json(), other.json()]


print(requests.get(f"{SHOP}/orders/812", timeout=10).json())
print(asyncio.run(two()))
with urllib.request.urlopen(f"{SHOP}/terms") as answer:  # noqa: S310
    print(answer.read().decode())
