"""A thread that polls with ``time.sleep(0)`` lets the others of its run go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.testing import FakeProvider
from tests.cli.scripts import Scripts

SCRIPT = """
import httpx2, os, threading, time
URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
done = []
def ask(word):
    answer = httpx2.post(URL, json={"model": "m", "messages": [{"role": "user", "content": word}]}).json()
    print("answered", word, flush=True)
    done.append(answer["choices"][0]["message"]["content"])
def compute(word):
    print("computed", word)
    done.append(word)
for kinds in ([ask], [compute], [ask, compute], [compute, ask, ask]):
    done.clear()
    threads = [threading.Thread(target=kind, args=(f"{number}",)) for number, kind in enumerate(kinds)]
    for thread in threads:
        thread.start()
    while len(done) < len(kinds):
        time.sleep(0)
    print(sorted(done))
    for thread in threads:
        thread.join()
stop = False
def polls():
    while not stop:
        time.sleep(0)
    print("stopped")
thread = threading.Thread(target=polls)
thread.start()
time.sleep(0.01)
stop = True
thread.join()
try:
    time.sleep("x")
except TypeError as error:
    print(error)
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


def test_a_script_that_polls_ends_and_replays(scripts: Scripts) -> None:
    path = scripts.write(SCRIPT)
    with FakeProvider(["a", "b", "c", "d"]) as provider:
        done = scripts.call("run", str(path), env=provider.env())
    assert done.code == 0, done.all
    assert "holds up the threads" not in done.err
    assert "stopped\n'str' object cannot be interpreted as an integer\n" in done.out
    for _ in range(3):
        again = scripts.replay()
        assert again.code == 0, again.all
        assert again.out.startswith(done.out)
