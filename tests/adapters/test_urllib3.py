"""urllib3 and requests through their seam: what the contract does not hold."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import pytest
import requests
import urllib3

from agentloom import agent
from agentloom.adapters import sdks, urllib3_seam
from agentloom.errors import NotSupported
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Raw
from tests.adapters.seam import tape


def uploads(url: str) -> Any:
    bodies: list[Any] = [b"one", "two", io.BytesIO(b"three"), iter([b"fo", "ur"]), bytearray(b"five"), None]
    found = []
    with urllib3.PoolManager() as pool:
        for body in bodies:
            found.append(pool.request("POST", url + "/x", body=body).status)  # noqa: PERF401 - one after the other
    return found


def test_bodies_of_every_kind() -> None:
    sdks.watch()
    with FakeProvider(["a"] * 6, others=True) as fake:
        trace = agent(uploads).run(fake.url, store=MemoryStore())
    assert trace.replay().verdict == "identical"
    assert [call.request.get("text") for call in trace.calls] == ["one", "two", "three", "four", "five", None]


SECRET = "cookie-" + "very-secret-0815"


def logs_in(url: str) -> Any:
    with requests.Session() as session:
        session.get(url + "/in")
        session.get(url + "/page")
        return sorted(session.cookies.keys())


def test_cookies_work_live_and_are_no_part_of_the_trace() -> None:
    sdks.watch()
    cookie = Raw(b"", 200, {"content-type": "text/plain", "set-cookie": f"sid={SECRET}; Path=/"})
    with FakeProvider([cookie, "page"], others=True) as fake:
        trace = agent(logs_in).run(fake.url, store=MemoryStore())
        assert fake.seen[1].headers["cookie"] == f"sid={SECRET}"
    assert SECRET not in str([(call.request, call.result) for call in trace.calls])
    assert trace.replay().verdict == "identical"


def changed(url: str) -> Any:
    try:
        return requests.post(url + "/chat/completions", json={"model": "other"}, timeout=5).status_code
    except requests.RequestException:
        return "swallowed"


def asks(url: str) -> Any:
    return requests.post(url + "/chat/completions", json={"model": "m"}, timeout=5).status_code


def test_a_replay_that_would_reach_the_network_is_refused_with_its_call() -> None:
    done = tape(asks, ["x"], edited=changed)
    assert done.report.verdict == "diverged"
    assert done.report.finding is not None
    assert "other" in str(done.report)
    assert done.seen == 1


def through_a_proxy(url: str) -> Any:
    found = []
    for proxy in (url, "http://127.0.0.1:9"):
        try:
            answer = requests.get("http://example.invalid/x", proxies={"http": proxy}, timeout=5)
            found.append([answer.status_code, answer.json()["text"]])
        except requests.RequestException as error:
            found.append([type(error).__name__])
    return found


def test_a_proxy() -> None:
    sdks.watch()
    with FakeProvider(["by proxy"], others=True) as fake:
        trace = agent(through_a_proxy).run(fake.url, store=MemoryStore())
    assert trace.output == [[200, "by proxy"], ["ProxyError"]]
    assert trace.replay().verdict == "identical"


def test_a_release_without_the_methods_is_refused_by_name() -> None:
    module: Any = ModuleType("urllib3")
    module.connectionpool = module
    module.HTTPConnectionPool = module.HTTPSConnectionPool = type("HTTPConnectionPool", (), {})
    module.__version__ = "99.0"
    with pytest.raises(NotSupported, match=r"urllib3 99\.0 .*HTTPConnectionPool\._make_request"):
        urllib3_seam.install(module)
