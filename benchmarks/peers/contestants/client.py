"""The openai SDK as workload W's model, and the server on loopback that answers it from another process."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable

from benchmarks.agent.workload import Message

__all__ = ["Server", "ask_with"]


class Server:
    """``benchmarks.peers.server`` in a process of its own, so that its time is not counted with the recorder's."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.peers.server"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        port = self.process.stdout.readline() if self.process.stdout else ""
        self.url = f"http://127.0.0.1:{int(port)}/v1"

    def stop(self) -> None:
        """The server ends when its input does."""
        self.process.communicate(timeout=10)


def ask_with(url: str) -> Callable[[list[Message]], Message]:
    """A model for `workload.loop`: one chat completion a call, with a client made here."""
    client = importlib.import_module("openai").OpenAI(base_url=url, api_key="unused", max_retries=0)

    def ask(messages: list[Message]) -> Message:
        message = client.chat.completions.create(model="m", messages=messages).choices[0].message
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": message.content, "tool_calls": calls}

    return ask
