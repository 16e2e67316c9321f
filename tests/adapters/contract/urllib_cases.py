"""requests, urllib3 and urllib.request."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import requests
import urllib3

from agentloom.testing import Drops, Fails, Says
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import headers_seen, seen
from tests.adapters.contract.httpx_cases import (
    BYTES,
    COOKIE,
    EMPTY,
    EVENTS,
    JSON,
    LINES,
    MOVED,
    SLOW,
    STREAM,
    ZIPPED,
)

BROKEN = Says("one two three", break_after=2)
ASYNC = {"async": "the library has no async calls"}


def whole(url: str) -> Any:
    with requests.Session() as s:
        found = [
            s.post(url + "/a", json={"q": 1}, headers={"x-id": "7"}),
            s.get(url + "/b", params={"page": 2}),
            s.post(url + "/c", data={"form": "x"}, files={"up": ("a.bin", b"\x00\xff" * 9)}),
            s.get(url + "/d"),
            s.head(url + "/f"),
            s.delete(url + "/g"),
            s.post(url + "/h", data=iter([b"in ", b"pieces"])),
        ]
        return [seen(one) for one in found], [one.name for one in s.cookies]


def stream(url: str) -> Any:
    found: list[Any] = []
    with requests.get(url + "/lines", stream=True, timeout=5) as answer:
        found.append([line.decode() for line in answer.iter_lines()])
    with requests.get(url + "/bytes", stream=True, timeout=5) as answer:
        found.append([len(one) for one in answer.iter_content(1000)])
    with requests.post(url + "/events", json={"stream": True}, stream=True, timeout=5) as answer:
        found.append([line.decode() for line in answer.iter_lines()])
    with requests.post(url + "/chat/completions", json=STREAM, stream=True, timeout=5) as answer:
        found.append([one.decode() for one in answer.iter_content(None)])
    return found


def early(url: str) -> Any:
    with requests.post(url + "/chat/completions", json=STREAM, stream=True, timeout=5) as answer:
        return next(answer.iter_lines()).decode()


def failing(url: str) -> Any:
    found: list[Any] = []
    for place in (url, url, url + "/chat/completions", "http://127.0.0.1:9/", "http://none.invalid/"):
        try:
            answer = requests.post(place, json=STREAM, timeout=5)
            answer.raise_for_status()
            found.append(seen(answer))
        except requests.RequestException as error:
            found.append(chain(error))
    return found


def chain(error: BaseException | None) -> list[list[str]]:
    """Types and texts of an error and of what is below it."""
    found: list[list[str]] = []
    while error is not None:
        text = str(seen(str(error)))
        found.append([f"{type(error).__module__}.{type(error).__qualname__}", text])
        error = error.__cause__ or error.__context__
    return found


def retried(url: str) -> Any:
    retry = urllib3.Retry(3, status_forcelist=[503], allowed_methods=None, backoff_factor=0.4)
    with requests.Session() as s:
        s.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
        answer = s.post(url, json={"q": 1}, timeout=5)
        return seen(answer), len(answer.raw.retries.history)


def limited(url: str) -> Any:
    try:
        return seen(requests.get(url, timeout=0.2))
    except requests.Timeout as error:
        return chain(error)


def raw(url: str) -> Any:
    with requests.get(url, stream=True, timeout=5) as answer:
        below = answer.raw
        data = below.read(700)
        return [seen(data), below.status, below.version, headers_seen(below.headers.items()), below.reason]


REQUESTS = Seam(
    "requests",
    [
        Case("sync", whole, [JSON, COOKIE, ZIPPED, MOVED, Says("x"), EMPTY, EMPTY, JSON]),
        Case("stream", stream, [LINES, BYTES, EVENTS, Says("a b c")], ["http"] * 3 + ["model"]),
        Case("left early", early, [Says("a b c")], ["model"]),
        Case("error", failing, [Fails(404), Drops(), BROKEN]),
        Case("retry", retried, [Fails(503), Drops(), Fails(503), JSON], waits=True),
        Case("cancel", limited, [SLOW], ["http"], "by a time limit"),
        Case("raw", raw, [BYTES], ["http"]),
    ],
    ASYNC,
)


def u_whole(url: str) -> Any:
    found: list[Any] = []
    with urllib3.PoolManager() as pool:
        for method, path, options in (
            ("POST", "/a", {"json": {"q": 1}}),
            ("GET", "/b", {"fields": {"page": "2"}}),
            ("GET", "/d", {}),
            ("HEAD", "/f", {}),
        ):
            made: Any = pool.request(method, url + path, **options)
            found.append([made.status, headers_seen(made.headers.items()), seen(made.data), made.geturl()])
    return found


def u_stream(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        lines: Any = pool.request("GET", url, preload_content=False)
        found = [len(one) for one in lines.stream(1000)]
        events: Any = pool.request("POST", url + "/chat/completions", json=STREAM, preload_content=False)
        return found, [one.decode() for one in events.stream()]


def u_early(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        made: Any = pool.request("GET", url, preload_content=False)
        data = made.read(10)
        made.close()
        return seen(data)


def u_failing(url: str) -> Any:
    found: list[Any] = []
    with urllib3.PoolManager(retries=False) as pool:
        for place in (url, url, url + "/chat/completions", "http://127.0.0.1:9/"):
            try:
                made: Any = pool.request("POST", place, json=STREAM)
                found.append([made.status, seen(made.data)])
            except urllib3.exceptions.HTTPError as error:
                found.append(chain(error))
    return found


def u_retried(url: str) -> Any:
    retry = urllib3.Retry(3, status_forcelist=[503], allowed_methods=None, backoff_factor=0.4)
    with urllib3.PoolManager(retries=retry) as pool:
        made: Any = pool.request("GET", url)
        return made.status, [one.status for one in made.retries.history]


def u_limited(url: str) -> Any:
    with urllib3.PoolManager(retries=False, timeout=0.2) as pool:
        try:
            return seen(pool.request("GET", url).data)
        except urllib3.exceptions.HTTPError as error:
            return chain(error)


URLLIB3 = Seam(
    "urllib3",
    [
        Case("sync", u_whole, [JSON, COOKIE, ZIPPED, EMPTY], ["http"] * 4),
        Case("stream", u_stream, [LINES, Says("a b c")], ["http", "model"]),
        Case("left early", u_early, [LINES], ["http"]),
        Case("error", u_failing, [Fails(404), Drops(), BROKEN]),
        Case("retry", u_retried, [Fails(503), Fails(503), JSON], waits=True),
        Case("cancel", u_limited, [SLOW], ["http"], "by a time limit"),
    ],
    ASYNC | {"raw": "its responses are the raw ones"},
)


def asked(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})


def l_facts(answer: Any) -> Any:
    return [answer.status, answer.msg, answer.reason, headers_seen(answer.headers.items()), answer.url]


def l_whole(url: str) -> Any:
    found: list[Any] = []
    for place, body in ((url + "/a", {"q": 1}), (url + "/b", None), (url + "/c", None), (url + "/d", None)):
        with urllib.request.urlopen(asked(place, body)) as answer:
            found.append([l_facts(answer), seen(answer.read())])
    return found


def l_stream(url: str) -> Any:
    with urllib.request.urlopen(asked(url + "/chat/completions", STREAM)) as answer:
        return [line.decode() for line in answer]


def l_early(url: str) -> Any:
    with urllib.request.urlopen(asked(url)) as answer:
        return answer.readline().decode()


def l_failing(url: str) -> Any:
    found: list[Any] = []
    for place in (url, url, url + "/chat/completions", "http://127.0.0.1:9/"):
        try:
            with urllib.request.urlopen(asked(place, STREAM)) as answer:
                found.append(seen(answer.read()))
        except urllib.error.HTTPError as error:
            found.append([str(error), l_facts(error), seen(error.read())])
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found.append(chain(error))
    return found


def l_limited(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=0.2) as answer:
            return seen(answer.read())
    except OSError as error:
        return chain(error)


URLLIB = Seam(
    "urllib.request",
    [
        Case("sync", l_whole, [JSON, COOKIE, ZIPPED, MOVED, BYTES], ["http"] * 5),
        Case("stream", l_stream, [Says("a b c")], ["model"]),
        Case("left early", l_early, [LINES], ["http"]),
        Case("error", l_failing, [Fails(404), Drops(), BROKEN]),
        Case("cancel", l_limited, [SLOW], ["http"], "by a time limit"),
    ],
    ASYNC | {"retry": "the library retries nothing", "raw": "its responses are the raw ones"},
)

SEAMS = [REQUESTS, URLLIB3, URLLIB]
