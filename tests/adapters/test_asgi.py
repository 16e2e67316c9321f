"""One run a request: Starlette and FastAPI over their own ASGI, and a real server whose clients go away."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import fastapi
import httpx2
import openai
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

import agentloom
from agentloom import DivergenceError, Trace, flag, record, tool
from agentloom.adapters.asgi import is_asgi
from agentloom.errors import TargetError
from agentloom.runtime import passed
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says
from tests.api import recorded_programs as programs
from tests.api.recorded_programs import in_loop, look

instrument: Any = agentloom.instrument
"""An application as such says nothing of how it is replayed."""


@tool(effect="write")
def charge(cents: int) -> str:
    charged.append(cents)
    return f"charged {cents}"


charged: list[int] = []


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def traces(store: MemoryStore) -> list[Trace]:
    """Oldest first."""
    return [Trace(store.read(row.run)) for row in reversed(store.runs())]


@asynccontextmanager
async def client(app: Any) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://service") as made:
        yield made


async def research(request: Request) -> JSONResponse:
    body = await request.json()
    answer = await record(programs.research(int(body["n"])))
    return JSONResponse({"total": answer.total})


async def plain(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{await look(int(request.query_params['n']))}")


async def streamed(_: Request) -> StreamingResponse:
    async def parts() -> AsyncIterator[str]:
        for number in range(3):
            yield f"{await look(number)} "

    async def after() -> None:
        charge(5)

    return StreamingResponse(parts(), media_type="text/plain", background=BackgroundTask(after))


async def fails(_: Request) -> None:
    charge(1)
    raise KeyError("gone")


async def bad(_: Request) -> PlainTextResponse:
    charge(2)
    return PlainTextResponse("no", status_code=503)


def in_a_thread(request: Request) -> PlainTextResponse:
    return PlainTextResponse(charge(int(request.query_params["n"])))


async def socket_echo(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


def starlette(**options: Any) -> Starlette:
    return Starlette(
        routes=[
            Route("/research", research, methods=["POST"]),
            Route("/plain", plain),
            Route("/streamed", streamed),
            Route("/fails", fails),
            Route("/bad", bad),
            Route("/thread", in_a_thread),
            WebSocketRoute("/socket", socket_echo),
        ],
        middleware=[Middleware(instrument, **options)],
    )


@in_loop
async def test_a_request_is_a_run_and_replays(store: MemoryStore) -> None:
    app = starlette(store=store, tags=lambda scope: {"path": scope["path"]})
    secrets = [uuid.uuid4().hex, uuid.uuid4().hex]  # not in the source, which is in the trace
    async with client(app) as http:
        answer = await http.post(
            "/research", json={"n": 4}, headers={"authorization": f"Bearer {secrets[0]}"}
        )
        assert answer.json() == {"total": 12}
        assert (await http.get(f"/plain?n=2&api_key={secrets[1]}")).text == "4"
    first, second = traces(store)
    assert (first.name, second.name) == ("POST /research", "GET /plain")
    assert first.tags == {"path": "/research"}
    assert first.output == {"status": 200, "content_type": "application/json", "body": '{"total":12}'}
    assert first.input["kwargs"]["request"]["headers"]["content-type"] == "application/json"
    assert len(first.calls) == 4
    for secret in secrets:
        assert all(secret.encode() not in store.read(trace.run_id) for trace in (first, second))
    assert [entry["kind"] for entry in first.journal.entries if entry["kind"] == "gap"] == []
    again = instrument(starlette(store=MemoryStore()))
    for trace in (first, second):
        report = await again.replay_request(trace)
        assert report.verdict == "identical"


@in_loop
async def test_streams_background_tasks_and_threads_belong_to_the_request(store: MemoryStore) -> None:
    charged.clear()
    app = starlette(store=store)
    async with client(app) as http:
        assert (await http.get("/streamed")).text == "0 2 4 "
        assert (await http.get("/thread?n=7")).text == "charged 7"
    assert charged == [5, 7]
    first, second = traces(store)
    assert [call.name for call in first.calls] == ["look", "look", "look", "charge"]
    assert first.output["body"] == "0 2 4 "
    assert [call.name for call in second.calls] == ["charge"]
    for trace in (first, second):
        assert (await instrument(starlette()).replay_request(trace)).verdict == "identical"
    assert charged == [5, 7]


@in_loop
async def test_exceptions_pass_and_end_the_run_as_failed(store: MemoryStore) -> None:
    async with client(starlette(store=store)) as http:
        with pytest.raises(KeyError) as raised:
            await http.get("/fails")
        assert agentloom.trace_of(raised.value).status == "failed"
        assert (await http.get("/bad")).status_code == 503
        assert (await http.get("/nowhere")).status_code == 404
    assert [trace.status for trace in traces(store)] == ["failed", "completed", "completed"]


@in_loop
async def test_only_what_is_worth_it_is_kept() -> None:
    async def kept(**options: Any) -> list[str]:
        store = MemoryStore()
        async with client(starlette(store=store, **options)) as http:
            for path in ("/plain?n=1", "/bad", "/fails"):
                with suppress(KeyError):
                    await http.get(path)
        return [trace.name.removeprefix("GET ") for trace in traces(store)]

    assert await kept() == ["/plain", "/bad", "/fails"]
    assert await kept(keep="failed") == ["/bad", "/fails"]
    assert await kept(keep=lambda trace: trace.name == "GET /plain") == ["/plain"]
    assert await kept(rate=0) == []
    assert await kept(rate=0, keep="failed") == []


@in_loop
async def test_the_sample_follows_from_the_id_of_the_request() -> None:
    async def kept() -> set[str]:
        store = MemoryStore()
        app = starlette(
            store=store, rate=0.5, name=lambda scope: dict(scope["headers"])[b"x-request-id"].decode()
        )
        async with client(app) as http:
            for number in range(40):
                await http.get("/plain?n=1", headers={"x-request-id": f"request {number}"})
        return {trace.name for trace in traces(store)}

    first = await kept()
    assert 8 < len(first) < 32
    assert await kept() == first


@in_loop
async def test_fifty_requests_at_once_do_not_cross(store: MemoryStore) -> None:
    def say(seen: Any) -> Says:
        return Says(f"echo {seen.body['messages'][0]['content']}")

    with FakeProvider(say) as provider:
        sdk = openai.AsyncOpenAI(base_url=provider.openai_url, api_key="unused")
        app = fastapi.FastAPI()

        @app.get("/ask/{number}")
        async def ask(number: int) -> dict[str, Any]:
            async def agent() -> list[str | None]:
                async def one(part: int) -> str | None:
                    content = f"{number}.{part}"
                    reply = await sdk.chat.completions.create(
                        model="m", messages=[{"role": "user", "content": content}]
                    )
                    return reply.choices[0].message.content

                return list(await asyncio.gather(*(one(part) for part in range(3))))

            return {"said": await record(agent())}

        recorded = instrument(app, store=store)
        assert recorded.title == "FastAPI"  # what is the application's stays at hand
        async with client(recorded) as http:
            answers = await asyncio.gather(*(http.get(f"/ask/{number}") for number in range(50)))
            for number, answer in enumerate(answers):
                assert answer.json() == {"said": [f"echo {number}.{part}" for part in range(3)]}
        assert provider.count == 150
        found = traces(store)
        assert len(found) == 50
        for trace in found:
            which = trace.name.rpartition("/")[2]
            asked = [call.request["messages"][0]["content"] for call in trace.calls]
            assert asked == [f"{which}.{part}" for part in range(3)]
            assert (await recorded.replay_request(trace)).verdict == "identical"
        assert provider.count == 150
        await sdk.close()


@in_loop
async def test_a_changed_application_diverges(store: MemoryStore) -> None:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{await look(int(request.query_params['n']) + shift[0])}")

    shift = [0]
    app = instrument(Starlette(routes=[Route("/", answer)]), store=store)
    async with client(app) as http:
        await http.get("/?n=2")
    (trace,) = traces(store)
    shift[0] = 1
    with pytest.raises(DivergenceError, match="args.number"):
        await app.replay_request(trace)
    with pytest.raises(TargetError, match="whole request"):
        await app.replay_request(programs_trace(store))


def programs_trace(store: MemoryStore) -> Trace:
    @agentloom.agent
    def other() -> int:
        return 1

    return other.run(store=store)


@in_loop
async def test_flagged_runs_are_kept() -> None:
    store = MemoryStore()

    async def odd(request: Request) -> PlainTextResponse:
        if request.query_params["n"] == "1":
            await flag("odd")
        return PlainTextResponse("ok")

    async with client(instrument(Starlette(routes=[Route("/", odd)]), store=store, keep="flagged")) as http:
        for number in range(3):
            await http.get(f"/?n={number}")
    assert [trace.input["kwargs"]["request"]["query"] for trace in traces(store)] == ["n=1"]


async def served(
    app: Any, work: Callable[[int], Awaitable[None]], *, lifespan: Any = "on", http: Any = "auto"
) -> None:
    """``work(port)`` while a real server serves ``app``."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", lifespan=lifespan, http=http)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        await work(listening.getsockname()[1])
    finally:
        server.should_exit = True
        await serving
        listening.close()


@in_loop
async def test_a_client_that_goes_away_cancels_the_run(store: MemoryStore) -> None:
    ended = asyncio.Event()

    async def slow(_: Request) -> StreamingResponse:
        async def parts() -> AsyncIterator[str]:
            try:
                yield "first "
                await agentloom.sleep(30)
            finally:
                ended.set()

        return StreamingResponse(parts())

    async def work(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while b"first" not in await reader.readline():
            pass
        writer.close()
        await writer.wait_closed()
        await ended.wait()

    app = instrument(Starlette(routes=[Route("/", slow)]), store=store)
    await served(app, work)
    (trace,) = traces(store)
    assert trace.status == "cancelled"
    assert trace.calls[0].status == "cancelled"
    assert (await app.replay_request(trace)).verdict == "identical"


async def asks(port: int, request: bytes, began: asyncio.Event, go_on: asyncio.Event) -> None:
    """A client that sends a request, and is gone once the application has begun to answer it."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    await began.wait()
    writer.close()
    await writer.wait_closed()
    await asyncio.sleep(0.05)  # the server reads that it is gone
    go_on.set()


POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("http", ["h11", "httptools"])
@pytest.mark.parametrize("request_", [GET, POST], ids=["get", "post"])
@in_loop
async def test_a_client_that_goes_away_before_an_answer_that_is_not_streamed(
    request_: bytes, http: Any, store: MemoryStore
) -> None:
    began, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    app = fastapi.FastAPI()

    @app.api_route("/", methods=["GET", "POST"])
    async def answer(request: Request) -> Any:
        body = (await request.body()).decode() if request.method == "POST" else ""
        found = await look(3)
        began.set()
        await go_on.wait()
        ended.set()
        return {"found": found, "body": body}

    async def work(port: int) -> None:
        await asks(port, request_, began, go_on)
        await ended.wait()
        await asyncio.sleep(0.02)

    await served(instrument(app, store=store, keep="failed"), work, http=http)
    (trace,) = traces(store)
    assert trace.status == "cancelled"
    assert {"client": "went away before its answer was complete"} in trace.notes
    assert len(trace.calls) == 1
    report = await instrument(app).replay_request(trace)
    assert report.verdict == "identical"


@in_loop
async def test_looking_for_the_client_takes_nothing_from_the_application(store: MemoryStore) -> None:
    async def early(scope: Any, receive: Any, send: Any) -> None:
        """Answers before it reads the body."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"!"})

    async def work(port: int) -> None:
        async with httpx2.AsyncClient() as http:
            url = f"http://127.0.0.1:{port}/"
            for size in (3, 300_000):
                answer = await http.post(url, content=b"y" * size)
                assert answer.content == b"y" * size + b"!"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
            writer.write(head)
            first = await reader.readline()
            assert b" 200 " in first  # it was not asked to send its body before the application wanted it
            writer.close()

    app = instrument(early, store=store)
    await served(app, work, lifespan="off")
    assert [trace.status for trace in traces(store)][:2] == ["completed", "completed"]
    async with client(app) as http:
        assert (await http.post("/", content=b"zz")).content == b"zz!"


@in_loop
async def test_a_server_that_says_it_when_it_is_sent_to(store: MemoryStore) -> None:
    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        raise OSError("the client is gone")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await look(1)
        with suppress(OSError):
            await send({"type": "http.response.start", "status": 200, "headers": []})

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    await instrument(app, store=store)(scope, receive, send)
    (trace,) = traces(store)
    assert trace.status == "cancelled"


@in_loop
async def test_a_failed_request_is_replayed_to_a_report(store: MemoryStore) -> None:
    app = starlette(store=store)
    async with client(app) as http:
        with suppress(KeyError):
            await http.get("/fails")
    (trace,) = traces(store)
    charged.clear()
    report = await instrument(starlette()).replay_request(trace)
    assert report.verdict == "identical"
    assert report.counts.exact == 1
    assert not charged

    async def other(_: Request) -> None:
        charge(1)
        raise KeyError("another")

    async def fine(_: Request) -> PlainTextResponse:
        charge(1)
        return PlainTextResponse("fine")

    for endpoint in (other, fine):
        changed = instrument(Starlette(routes=[Route("/fails", endpoint)]))
        with pytest.raises(DivergenceError) as raised:
            await changed.replay_request(trace)
        assert raised.value.report.finding.cls == "output"


@tool(effect="read")
def asked(what: str | int) -> str:
    return f"asked {what}"


@in_loop
async def test_credentials_of_a_request_replay_though_the_trace_does_not_hold_them(
    store: MemoryStore,
) -> None:
    async def answer(request: Request) -> PlainTextResponse:
        scheme, _, token = request.headers["authorization"].partition(" ")
        said = [asked(token), asked(request.cookies["session"]), scheme, request.headers["x-api-key"]]
        return PlainTextResponse(" ".join(said))

    app = instrument(Starlette(routes=[Route("/", answer)]), store=store)
    token, session, key = (uuid.uuid4().hex for _ in range(3))
    headers = {
        "authorization": f"Bearer {token}",
        "x-api-key": key,
        "cookie": f"session={session}; theme=dark",
    }
    async with client(app) as http:
        assert (await http.get("/", headers=headers)).text == f"asked {token} asked {session} Bearer {key}"
    (trace,) = traces(store)
    assert not any(one.encode() in store.read(trace.run_id) for one in (token, session, key))
    report = await app.replay_request(trace)
    assert report.verdict == "identical"
    with agentloom.replaying(trace):
        for one in (headers, {**headers, "authorization": f"Bearer {uuid.uuid4().hex}"}):
            async with client(app) as http:
                assert (await http.get("/", headers=one)).status_code == 200


def tenant(request: Request) -> str | int:
    return request.headers["x-tenant"]


def length_of_tenant(request: Request) -> str | int:
    return len(request.headers["x-tenant"])


def digest_of_tenant(request: Request) -> str | int:
    return hashlib.sha256(request.headers["x-tenant"].encode()).hexdigest()


def theme(request: Request) -> str | int:
    return request.cookies["theme"]


def of_the_query(request: Request) -> str | int:
    return request.query_params["api_key"]


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (tenant, "x-tenant"),
        (length_of_tenant, "x-tenant"),
        (digest_of_tenant, "x-tenant"),
        (theme, "cookie.theme"),
        (of_the_query, "query.api_key"),
    ],
)
@in_loop
async def test_a_header_that_is_not_kept_is_told_as_such(
    store: MemoryStore, read: Callable[[Request], Any], name: str
) -> None:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(asked(read(request)))

    app = instrument(Starlette(routes=[Route("/", answer)]), store=store)
    async with client(app) as http:
        await http.get(f"/?api_key={uuid.uuid4().hex}", headers={"x-tenant": "4711", "cookie": "theme=dark"})
    (trace,) = traces(store)
    with pytest.raises(DivergenceError) as raised:
        await app.replay_request(trace)
    report = await app.replay_request(trace, check=False)
    assert raised.value.report.finding == report.finding
    assert (report.verdict, report.finding.cls) == ("diverged", "redacted")
    assert (
        report.finding.message
        == f"The trace does not hold {name} of the request, and this value comes of it."
    )
    assert report.cause is None


@in_loop
async def test_what_may_come_of_a_header_that_is_not_kept(store: MemoryStore) -> None:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(asked(sum(request.headers["x-tenant"].encode())))

    async def fails(request: Request) -> PlainTextResponse:
        return PlainTextResponse(asked(int(request.headers["x-tenant"])))

    app = instrument(Starlette(routes=[Route("/", answer), Route("/int", fails)]), store=store)
    async with client(app) as http:
        await http.get("/", headers={"x-tenant": "4711"})
        await http.get("/int", headers={"x-tenant": "4711"})
    first, second = traces(store)
    report = await app.replay_request(first, check=False)
    assert report.finding.cls == "redacted"
    assert report.finding.message == (
        "The trace does not hold all of the request (x-tenant), and this value may come of that."
    )
    report = await app.replay_request(second, check=False)
    assert report.finding.cls == "ended early"
    assert "the trace does not hold all of the request: x-tenant" in report.notes


@in_loop
async def test_headers_that_say_how_to_answer_are_kept(store: MemoryStore) -> None:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse("a" * 5000)

    app = instrument(
        Starlette(routes=[Route("/", answer)], middleware=[Middleware(GZipMiddleware, minimum_size=10)]),
        store=store,
    )
    async with client(app) as http:
        await http.get("/", headers={"accept-encoding": "gzip", "range": "bytes=0-9"})
    (trace,) = traces(store)
    assert trace.input["kwargs"]["request"]["headers"]["range"] == "bytes=0-9"
    assert (await app.replay_request(trace)).verdict == "identical"


@in_loop
async def test_another_request_is_said_first(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    app = starlette(store=store)
    async with client(app) as http:
        await http.get("/plain?n=2")
        await http.post("/research", json={"n": 2})
        monkeypatch.setenv("AGENTLOOM", "replay")
        with pytest.raises(
            DivergenceError, match=r"(?s)The input is not .*input.kwargs.request.query.*n=2.*n=3"
        ):
            await http.get("/plain?n=3")
        with pytest.raises(DivergenceError, match=r"(?s)The input is not .*request body"):
            await http.post("/research", json={"n": 3})
        assert (await http.get("/plain?n=2", headers={"x-request-id": "another"})).text == "4"


@in_loop
async def test_a_client_of_an_application_in_this_process_is_not_told_of(
    store: MemoryStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed, "_told", set())
    with caplog.at_level("WARNING", "agentloom.recording"):
        async with client(starlette(store=store)) as http:
            for _ in range(2):
                assert (await http.get("/plain?n=2")).text == "4"
    assert not caplog.records


@in_loop
async def test_a_secret_in_a_body_is_no_difference_and_not_shown(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = uuid.uuid4().hex
    monkeypatch.setenv("SERVICE_API_KEY", secret)
    app = starlette(store=store)
    async with client(app) as http:
        await http.post("/research", json={"n": 2, "key": secret})
        (trace,) = traces(store)
        assert secret.encode() not in store.read(trace.run_id)
        with agentloom.replaying(trace):
            assert (await http.post("/research", json={"n": 2, "key": secret})).status_code == 200
            with pytest.raises(DivergenceError, match="request body") as raised:
                await http.post("/research", json={"n": 3, "key": secret})
    assert secret not in repr(raised.value.report.to_json())


@pytest.mark.parametrize(
    "wrong", [{"AGENTLOOM": "recrod"}, {"AGENTLOOM": "replay", "AGENTLOOM_TRACE": "nowhere.loom"}]
)
@in_loop
async def test_what_fails_every_request_fails_the_start(
    wrong: dict[str, str],
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = starlette(store=store)  # its middleware is made when the server starts
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TargetError, match=r"recrod|nowhere\.loom"):
        await asyncio.to_thread(instrument, starlette())  # as at import
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", log_config=None, lifespan="auto", port=0))
    with pytest.raises(SystemExit):
        await server.serve()
    assert not server.started
    assert "recrod" in caplog.text or "nowhere.loom" in caplog.text


@in_loop
async def test_websockets_and_lifespan_pass_by(store: MemoryStore) -> None:
    began: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        began.append("up")
        yield
        began.append("down")

    async def work(port: int) -> None:
        import websockets

        async with websockets.connect(f"ws://127.0.0.1:{port}/socket") as connection:
            await connection.send("hello")
            assert await connection.recv() == "hello"
        async with httpx2.AsyncClient() as http:
            assert (await http.get(f"http://127.0.0.1:{port}/plain?n=3")).text == "6"

    routes = [WebSocketRoute("/socket", socket_echo), Route("/plain", plain)]
    await served(instrument(Starlette(routes=routes, lifespan=lifespan), store=store), work)
    assert began == ["up", "down"]
    assert [trace.name for trace in traces(store)] == ["GET /plain"]


@in_loop
async def test_long_bodies_are_known_by_their_digest(store: MemoryStore) -> None:
    async def size(request: Request) -> PlainTextResponse:
        return PlainTextResponse("x" * len(await request.body()))

    app = instrument(Starlette(routes=[Route("/", size, methods=["POST"])]), store=store)
    async with client(app) as http:
        assert len((await http.post("/", content=b"y" * 200_000)).content) == 200_000
    (trace,) = traces(store)
    assert trace.output["body"]["bytes"] == 200_000
    held = store.read(trace.run_id)
    assert b"y" * 1000 not in held
    assert b"x" * 1000 not in held
    with pytest.raises(TargetError, match="whole request"):
        await app.replay_request(trace)


def test_what_an_asgi_application_is() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None: ...
    async def worker(job: Any) -> None: ...

    assert is_asgi(app)
    assert is_asgi(starlette())
    assert is_asgi(fastapi.FastAPI())
    assert not is_asgi(worker)
    assert not is_asgi(json.dumps)
