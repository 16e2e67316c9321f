"""The player over real sockets, with the real SDKs where it matters: matching, order, misses, faults."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import openai
import pytest

from agentloom.errors import TrafficError
from agentloom.testing import Exchange, Faults, Frame, Player, Traffic
from agentloom.testing.exchanges import Headers
from tests.corpus.files import CORPUS, WHY, rows, traffic

CHAT = "https://api.openai.com/v1/chat/completions"
JSON = (("content-type", "application/json"),)


def made(said: Any, answer: Any = None, *, url: str = CHAT, name: str = "a#0", **fields: Any) -> Exchange:
    values: dict[str, Any] = {
        "name": name,
        "method": "POST",
        "url": url,
        "request_headers": JSON,
        "request_body": said if isinstance(said, bytes | None) else json.dumps(said).encode(),
        "status": 200,
        "headers": JSON,
        "body": answer if isinstance(answer, bytes) else json.dumps(answer).encode(),
        "streamed": False,
    }
    return Exchange(**values | fields)


def ask(
    player: Player, said: Any, path: str = "/v1/chat/completions", method: str = "POST"
) -> httpx2.Response:
    data = said if isinstance(said, bytes) else json.dumps(said).encode()
    with httpx2.Client(trust_env=False) as client:
        return client.request(method, player.url + path, content=data, headers=dict(JSON))


def test_requests_that_are_alike_get_their_answers_in_recorded_order() -> None:
    same = {"model": "m", "messages": []}
    with Player(made(same, 1), made({"model": "other"}, 2), made(same, 3, name="a#2")) as player:
        assert [ask(player, same).json(), ask(player, same).json()] == [1, 3]
        assert [one.name for one in player.unused] == ["a#0"]
        answer = ask(player, same)
        assert (answer.status_code, answer.headers["x-agentloom-miss"]) == (404, "exhausted")
        assert "recorded 2 times, asked for once more" in answer.json()["error"]["message"]
        player.rewind()
        assert ask(player, same).json() == 1
    with Player(made(same, 1), made(same, 3), repeat=True) as player:
        assert [ask(player, same).json() for _ in range(5)] == [1, 3, 1, 3, 1]


@pytest.mark.parametrize(
    "said",
    [
        b'{"b": [1, {"x": null}], "a": 1.0}',
        b' {"a":1,"b":[1,{"x":null}]}\n',
        b'{"a": 1, "b": [1.0, {"x": null}]}',
    ],
)
def test_bodies_are_compared_by_value(said: bytes) -> None:
    with Player(made({"a": 1, "b": [1, {"x": None}]}, "found")) as player:
        assert ask(player, said).json() == "found"


@pytest.mark.parametrize(
    ("said", "place", "values"),
    [
        ({"messages": [{"content": "b"}]}, "messages[0].content", 'was "a", is "b"'),
        ({"messages": [{"content": "a"}], "n": 2}, "n", "was absent, is 2"),
        ({}, "messages", 'was [{"content": "a"}], is absent'),
        ({"messages": [{"content": True}]}, "messages[0].content", 'was "a", is true'),
    ],
)
def test_a_miss_names_the_nearest_and_the_field(said: Any, place: str, values: str) -> None:
    far = made({"entirely": "different", "in": 3, "ways": 1}, 1, name="far#0")
    with Player(far, made({"messages": [{"content": "a"}]}, 2, name="near#1")) as player:
        error = ask(player, said).json()["error"]
        assert error["code"] == "changed"
        assert error["param"] == place
        assert "near#1" in error["message"]
        assert values in error["message"]
        (miss,) = player.misses
        assert (miss.kind, miss.nearest, miss.place) == ("changed", "near#1", place)


def test_a_miss_of_another_path_lists_what_there_is_without_the_query() -> None:
    with Player(made({}, 1)) as player:
        error = ask(player, {}, "/v1/embeddings?key=secret").json()["error"]
        assert (error["code"], "secret" in error["message"]) == ("missing", False)
        assert "POST /v1/embeddings; recorded: POST /v1/chat/completions" in error["message"]
        assert ask(player, b"", method="GET").json()["error"]["code"] == "missing"


def test_the_sdks_say_what_was_missed() -> None:
    with Player(
        made({"model": "a"}, 1), made({"model": "a"}, 1, url="https://a.example/v1/messages")
    ) as player:
        with (
            openai.OpenAI(
                base_url=player.base_url("/chat/completions"), api_key="k", max_retries=0
            ) as client,
            pytest.raises(openai.NotFoundError, match="nearest is a#0"),
        ):
            client.chat.completions.create(model="b", messages=[])
        with (
            anthropic.Anthropic(
                base_url=player.base_url("/v1/messages"), api_key="k", max_retries=0
            ) as other,
            pytest.raises(anthropic.NotFoundError, match="nearest is a#0"),
        ):
            other.messages.create(model="b", max_tokens=1, messages=[])


def test_parameters_decide_between_exchanges_that_fit_alike() -> None:
    pages = [
        made(b"", number, url=f"https://a.example/models?page={number}", method="GET") for number in (1, 2)
    ]
    with Player(*pages) as player:
        assert ask(player, b"", "/models?page=2", "GET").json() == 2
        assert ask(player, b"", "/models?page=1", "GET").json() == 1
    with Player(*pages) as player:
        assert ask(player, b"", "/models?page=3", "GET").json() == 1


def test_what_is_not_known_fits_after_what_is() -> None:
    bare = made(None, "bare", url="")
    redacted = made({"a": 1}, "redacted", url="")
    known = made({"a": 1}, "known")
    with Player(bare, redacted, known) as player:
        assert [ask(player, {"a": 1}).json() for _ in range(1)] == ["known"]
        assert ask(player, {"a": 1}, "/elsewhere").json() == "redacted"
        assert ask(player, {"a": 9}, "/elsewhere").json() == "bare"
        assert player.base_url("/anything") == player.url


def test_ignored_fields_and_paths_alone() -> None:
    with Player(made({"a": 1, "user": "x"}, 1), ignore=["user"]) as player:
        assert ask(player, {"a": 1, "user": "y"}).json() == 1
    with Player(made({"a": 1}, 1), made({"b": 1}, 2), compare="path") as player:
        assert [ask(player, {"c": 1}).json() for _ in range(2)] == [1, 2]


def multipart(boundary: str, content: bytes) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'.encode()
    return head + content + f"\r\n--{boundary}--\r\n".encode()


def test_uploads_are_alike_whatever_the_boundary() -> None:
    with Player(made(multipart("one", b"\xff\x00sound"), 1, request_headers=())) as player:
        assert (
            ask(player, multipart("two", b"\xff\x00sounD"))
            .json()["error"]["param"]
            .startswith("parts[0].content")
        )
        assert ask(player, multipart("two", b"\xff\x00sound")).json() == 1


def test_forms_are_alike_whatever_the_order() -> None:
    form = (("content-type", "application/x-www-form-urlencoded"),)
    with (
        Player(made(b"a=1&b=2", 1, request_headers=form)) as player,
        httpx2.Client(trust_env=False) as client,
    ):
        answer = client.post(player.url + "/v1/chat/completions", content=b"b=2&a=1", headers=dict(form))
        assert answer.json() == 1


def test_a_chunked_request_and_a_proxys_address_are_understood() -> None:
    with Player(made({"a": [1, 2]}, 1)) as player:
        place = urlsplit(player.url)
        connection = http.client.HTTPConnection(str(place.hostname), place.port)
        connection.request(
            "POST", CHAT, body=iter([b'{"a": ', b"[1, 2]}"]), headers=dict(JSON), encode_chunked=True
        )
        assert connection.getresponse().read() == b"1"
        connection.close()


def test_headers_and_encodings_go_out_as_they_are_true() -> None:
    headers: Headers = (
        *JSON,
        ("Content-Encoding", "gzip"),
        ("Content-Length", "3"),
        ("Transfer-Encoding", "chunked"),
    )
    headers += (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-Bad", "a\r\nX-More: 1"), ("x/worse", "1"))
    true, false = made({"n": 1}, gzip.compress(b"[1]"), headers=headers), made({"n": 2}, [2], headers=headers)
    with Player(true, false) as player:
        first, second = ask(player, {"n": 1}), ask(player, {"n": 2})
    assert (first.json(), first.headers["content-encoding"]) == ([1], "gzip")
    assert second.json() == [2]
    assert "content-encoding" not in second.headers
    assert first.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert not {"x-bad", "x-more", "transfer-encoding"} & set(first.headers)


def test_statuses_without_a_body() -> None:
    with Player(made({}, b"", status=204), made(b"", [1], method="HEAD")) as player:
        assert (ask(player, {}).status_code, ask(player, b"", method="HEAD").content) == (204, b"")


STREAM = b"".join(b'data: {"n": %d}\n\n' % number for number in range(20))
EVENTS = made({}, STREAM, headers=(("content-type", "text/event-stream"),), streamed=True)


def pieces(player: Player) -> tuple[list[bytes], str | None]:
    """What a client gets, write by write, and how it ended."""
    got: list[bytes] = []
    with httpx2.Client(trust_env=False) as client:
        try:
            with client.stream("POST", player.url + "/v1/chat/completions", content=b"{}") as answer:
                got.extend(answer.iter_raw())
        except httpx2.TransportError as error:
            return got, type(error).__name__
    return got, None


@pytest.mark.parametrize("cut", [0, 1, 17, len(STREAM) - 1, len(STREAM)])
def test_a_stream_is_cut_at_a_byte(cut: int) -> None:
    with Player(EVENTS, faults=Faults(cut=cut)) as player:
        got, ended = pieces(player)
    assert b"".join(got) == STREAM[:cut]
    assert ended == "RemoteProtocolError"


def test_a_whole_answer_is_cut_at_a_byte() -> None:
    with Player(made({}, [1, 2, 3]), faults=Faults(cut=4)) as player:
        assert pieces(player) == ([b"[1, "], "RemoteProtocolError")


def test_sizes_of_writes() -> None:
    assert [len(piece) for piece in Faults(pieces=(1, 5, 100)).split(bytes(250))] == [1, 5, 100, 100, 44]
    assert list(Faults(pieces=(1, 0)).split(b"abc")) == [b"a", b"bc"]
    assert list(Faults().split(b"")) == []
    with Player(EVENTS, faults=Faults(pieces=7)) as player:
        got, ended = pieces(player)
    assert (b"".join(got), ended) == (STREAM, None)


def test_a_delay_is_waited_for_and_ends_with_the_player() -> None:
    with Player(made({}, 1), faults=Faults(delay=0.05)) as player:
        start = time.perf_counter()
        ask(player, {})
        assert time.perf_counter() - start >= 0.05
    player = Player(EVENTS, faults=Faults(delay=60)).start()
    threads = [threading.Thread(target=pieces, args=[player]) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(player.seen) < 2:
        threading.Event().wait(0.001)
    start = time.perf_counter()
    player.stop()
    for thread in threads:
        thread.join()
    assert time.perf_counter() - start < 10


def test_faults_may_depend_on_the_exchange() -> None:
    def faults(one: Exchange, before: int) -> Faults | None:
        return Faults(drop=True) if before == 0 else None

    with Player(EVENTS, repeat=True, faults=faults) as player:
        assert pieces(player) == ([], "RemoteProtocolError")
        assert b"".join(pieces(player)[0]) == STREAM
        assert [one.answer for one in player.seen] == [EVENTS, EVENTS]


def test_many_clients_at_once_each_get_an_answer_of_their_own() -> None:
    with Player(*(made({}, number) for number in range(40))) as player:
        got: list[int] = []
        threads = [threading.Thread(target=lambda: got.append(ask(player, {}).json())) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == list(range(40))
        assert not player.unused


def test_frames_cannot_be_played() -> None:
    with pytest.raises(TrafficError, match="frames of a websocket"):
        Player(Traffic("a.yaml", "ws", (), (Frame("sent", {}),)))
    with pytest.raises(ValueError, match="no recorded path ends with /v2"):
        Player(made({}, 1)).base_url("/v2")
    with pytest.raises(ValueError, match="the player does not run"):
        print(Player(made({}, 1)).url)


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
def test_every_exchange_of_the_corpus_is_found_and_served_byte_for_byte() -> None:
    served = 0
    with httpx2.Client(trust_env=False) as client:
        for row in rows():
            every = traffic(row).exchanges
            if not every:
                continue
            with Player(*every) as player:
                for one in every:
                    place = urlsplit(one.url)
                    url = player.url + (place.path or "/") + (f"?{place.query}" if place.query else "")
                    kind = [
                        (n, v) for n, v in one.request_headers if n.lower() == "content-type" and "/" in v
                    ]
                    answer = client.request(one.method, url, content=one.request_body or b"", headers=kind)
                    assert (answer.status_code, answer.content) == (one.status, one.content), one.name
                    served += 1
                assert not player.misses
                assert not player.unused
    assert served > 250
