"""An agent that passes a secret through every place that a payload can be in. The secret comes from outside:
it is in the file that the environment variable ``SECRET_FILE`` names, which host work alone reads.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import urllib.parse
from typing import Any, NamedTuple

from agentloom import agent, flag, note, step, tool
from agentloom.errors import RecordedError


class Credentials(NamedTuple):
    user: str
    secret: str


@tool(effect="read")
def fetch() -> str:
    with open(os.environ["SECRET_FILE"], encoding="utf-8") as file:
        return file.read()


@tool
def use(value: Any) -> Any:
    return value


@tool
def failing(value: str) -> str:
    error = ValueError(f"cannot sign in with {value}", value)
    error.add_note(f"tried {value}")
    raise error


def places(secret: str) -> dict[str, Any]:
    """Where it stands, in each coding. Every one is put together by the agent, live and on replay."""
    return {
        "text": f"the key is {secret}, keep it",
        "key": {secret: 1, "other": {f"in {secret}": 2}},
        "json": json.dumps({"inner": {"value": secret, "again": json.dumps([secret])}}),
        "escaped": json.dumps(secret).replace("-", "\\u002d"),
        "url": f"https://api.example.com/v1?q=1&key={urllib.parse.quote(secret, safe='')}",
        "form": urllib.parse.urlencode({"user": "bob", "field": secret}),
        "base64": base64.b64encode(secret.encode()).decode(),
        "inside": base64.b64encode(f"user:{secret}".encode()).decode(),
        "urlsafe": base64.urlsafe_b64encode(f"{{{secret}}}".encode()).decode(),
        "hex": secret.encode().hex(),
        "bytes": b"\x00\xff" + secret.encode() + b"\x00",
        "gzip": gzip.compress(secret.encode() * 3, mtime=0),
        "wide": secret.encode("utf-16-le"),
        "tuple": (1, (secret, {"deep": [secret]})),
        "set": {secret, "x"},
        "surrogate": f"\ud800 {secret}",
        "lines": [{"role": "user", "content": secret}, {"role": "user", "content": f"again {secret}"}],
    }


@agent(guard="off")
async def everywhere(given: str) -> dict[str, Any]:
    secret = fetch()
    made = {name: use(value) for name, value in places(secret).items()}
    await note({"seen": secret, "input": given})
    await flag(f"holds {secret}")
    caught: list[str] = []
    try:
        failing(secret)
    except (ValueError, RecordedError) as error:
        caught = [str(error), *map(str, error.args), *error.__notes__]
    kept = await step(lambda text: text[::1], secret)
    pair = use(list(Credentials("bob", secret)))
    return {"made": sorted(made), "caught": caught, "kept": kept, "pair": pair, "last": made["text"]}
