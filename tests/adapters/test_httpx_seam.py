"""Plain HTTP of both libraries through the seam."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import httpx
import httpx2
import openai
import pytest

from agentloom.adapters import httpx_seam
from agentloom.errors import NotSupported
from agentloom.testing.fake_provider import FakeProvider
from agentloom.testing.replies import Drops, Raw, Says
from tests.adapters.seam import tape

LIBRARIES: list[Any] = [httpx2, httpx]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_request_is_an_http_call(library: Any) -> None:
    def program(url: str) -> Any:
        with library.Client() as client:
            answer = client.post(url + "/none?key=hidden-value&page=2", content=b"x=1")
            return (
                answer.status_code,
                answer.headers["content-type"],
                answer.json(),
                str(answer.url).partition("?")[2],
            )

    done = tape(program, [])
    assert done.report.verdict == "identical"
    assert done.types() == ["http"]
    request = done.recording.request(done.calls[0])
    assert request["method"] == "POST"
    assert str(request["url"]).endswith("/none?key=%2A%2A%2A&page=2")
    assert request["text"] == "x=1"
    assert done.seen == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_chat_completions_are_model_calls_whoever_makes_them(library: Any) -> None:
    async def program(url: str) -> Any:
        async with library.AsyncClient() as client:
            answer = await client.post(url + "/chat/completions", json={"model": "m", "messages": []})
            return answer.json()["choices"][0]["message"]["content"]

    done = tape(program, ["hello"])
    assert (done.live, done.again) == ("hello", "hello")
    assert [(call.type, call.name, call.profile) for call in done.calls] == [("model", "m", "openai.chat/1")]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_connection_error_is_the_librarys_own(library: Any) -> None:
    def program(url: str) -> Any:
        try:
            library.post(url + "/chat/completions", json={"model": "m"})
        except library.TransportError as error:
            return [type(error).__module__, type(error).__name__, str(error), error.request.method]
        return None

    done = tape(program, [Drops()])
    assert done.report.verdict == "identical"
    assert done.live == done.again
    assert done.live[0] == library.__name__


def test_a_user_and_password_in_the_address_stay_out() -> None:
    secret = "pass" + "word-0123"

    def program(url: str) -> Any:
        return httpx2.get(url.replace("http://", f"http://me:{secret}@")).status_code

    done = tape(program, [])
    assert secret.encode() not in done.data
    assert done.report.verdict == "identical"


def test_event_hooks_and_compression_work_as_ever() -> None:
    import gzip

    body = gzip.compress(b'{"a": 1}')
    reply = Raw(body, 200, {"content-type": "application/json", "content-encoding": "gzip"})
    seen: list[int] = []

    def program(url: str) -> Any:
        with httpx2.Client(
            event_hooks={"response": [lambda answer: seen.append(answer.status_code)]}
        ) as client:
            return client.post(url + "/chat/completions", json={"model": "m"}).json()

    done = tape(program, [reply])
    assert done.live == done.again == {"a": 1}
    assert seen == [200, 200]


def test_a_stream_that_was_asked_for_and_not_given() -> None:
    def program(url: str) -> Any:
        request = {"model": "m", "messages": [], "stream": True}
        return httpx2.post(url + "/chat/completions", json=request).text

    done = tape(program, [Raw(b"plain", 200, {"content-type": "text/plain"})])
    assert done.live == done.again == "plain"


def test_a_client_closed_in_a_run_closes_its_connections_where_they_live() -> None:
    transports: list[Any] = []

    async def program(url: str) -> Any:
        async with httpx2.AsyncClient() as client:
            transports.append(client._transport)
            await client.post(url + "/chat/completions", json={"model": "m"})
        return client.is_closed

    done = tape(program, [Says("x")])
    assert done.live is True
    assert done.again is True
    assert [transport._pool.connections for transport in transports] == [[], []]


# The collector finds the connection in the same pass as the client; without agentloom it is the same.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_dropped_in_a_run_makes_no_task_of_it() -> None:
    async def program(url: str) -> Any:
        client = openai.AsyncOpenAI(base_url=url, api_key="unused")
        await client.chat.completions.create(model="m", messages=[])
        del client
        gc.collect()
        return asyncio.create_task(asyncio.sleep(0)).get_name()

    done = tape(program, [Says("x")])
    gc.collect()  # here, where the warning is expected, and not in a later test
    assert done.live == done.again == "Task-2"


def test_outside_a_run_nothing_changes() -> None:
    with FakeProvider([Says("x")]) as provider, httpx2.Client() as client:
        answer = client.post(provider.openai_url + "/chat/completions", json={"model": "m"})
        assert "server" in answer.headers


def test_a_library_without_the_method_is_refused_by_name() -> None:
    class Bare:
        __name__ = "httpx9"
        __version__ = "9.9"
        Client = AsyncClient = type("Client", (), {})

    module: Any = Bare()
    with pytest.raises(NotSupported, match=r"httpx9 9\.9 .*_transport_for_url"):
        httpx_seam.install(module)
