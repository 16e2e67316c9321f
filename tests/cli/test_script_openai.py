"""Scripts on the openai SDK, unmodified: recorded against a scripted server, replayed with it stopped and no key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agentloom.testing.fake_provider import FakeProvider, Script, Seen
from agentloom.testing.replies import Reply, Says, Wants
from tests.cli.scripts import Done, Scripts

EXAMPLES = Path(__file__).parents[2] / "examples" / "scripts"
REFUND: list[Reply | str] = [
    Says(tools=[Wants("lookup_order", {"order_id": 812})]),
    Says(tools=[Wants("issue_refund", {"order_id": 812, "amount": 40})]),
    "Refunded order 812: $40.00",
]


def record(scripts: Scripts, path: Path, script: Script, *args: str, options: tuple[str, ...] = ()) -> Done:
    with FakeProvider(script) as provider:
        return scripts.call("run", *options, str(path), "--", *args, env=provider.env())


def tool_script(body: str, names: tuple[str, ...] = ("work",)) -> str:
    """A script whose model asks for each of ``names``, which ``body`` defines; ``dispatch`` calls them. It speaks to
    the provider by plain HTTP, because importing the SDK takes a second."""
    return f"""
import json, os, httpx2
URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
{body}
def ask(**more):
    request = {{"model": "m", "messages": [{{"role": "user", "content": "go"}}], **more}}
    return httpx2.post(URL, json=request).json()["choices"][0]["message"]
tools = [{{"type": "function", "function": {{"name": name, "parameters": {{}}}}}} for name in {names!r}]
for call in ask(tools=tools)["tool_calls"]:
    function = call["function"]
    try:
        print(function["name"], dispatch(function["name"], **json.loads(function["arguments"])))
    except Exception as error:
        print("error", type(error).__name__, error)
print(ask()["content"])
"""


def asking(*names: str) -> list[Reply | str]:
    return [Says(tools=[Wants(name, {"n": 2}) for name in names]), "done"]


def test_the_refund_example(scripts: Scripts, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = Path(shutil.copy(EXAMPLES / "refund.py", home / "agent.py"))
    done = record(scripts, path, REFUND, "refund order 812")
    assert done.code == 0, done.all
    assert done.out == "Refunded order 812: $40.00\n"
    assert "5 calls: 3 model, 2 tool" in done.err
    assert "tools found by name: lookup_order (:16), issue_refund (:20)" in done.err
    assert "treated as writes, never run on replay" in done.err
    assert "not recorded: nothing" in done.err
    calls = [(call.type, call.name, call.effect) for call in scripts.recording().calls]
    model = ("model", "gpt-4o", None)
    assert calls == [
        model,
        ("tool", "lookup_order", "write"),
        model,
        ("tool", "issue_refund", "write"),
        model,
    ]

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = scripts.replay(cwd=elsewhere, env={"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "99"})
    assert again.code == 0, again.all
    assert again.out.startswith(done.out + "-- IDENTICAL  5/5 calls, stdout, stderr, exit code 0")
    assert again.err == "refunding 40 for order 812\n"  # printed by the tool, which did not run

    path.write_text(path.read_text().replace("when paid", "within 30 days"))
    edited = scripts.replay()
    assert edited.code == 3
    assert "DIVERGED  changed  call 1 of 5  model gpt-4o" in edited.out
    assert "messages[0].content" in edited.out
    assert "code changed: SYSTEM (agent.py:12)" in edited.out


def test_the_research_example(scripts: Scripts, tmp_path: Path) -> None:
    latencies = iter([0.09, 0.03, 0.06, 0.02, 0.05, 0.01])

    def answer(seen: Seen) -> Reply:
        messages = seen.body["messages"]
        topic = messages[0]["content"].removeprefix("What about ").removesuffix("?")
        wait = next(latencies)
        if len(messages) == 1 and topic != "harvest":
            return Says(tools=[Wants("search", {"query": topic})], latency=wait)
        return Says(f"All about {topic}.", latency=wait)

    path = Path(shutil.copy(EXAMPLES / "research.py", tmp_path / "research.py"))
    done = record(scripts, path, answer, "tides", "moon", "harvest", options=("--tool", "search=read"))
    assert done.code == 0, done.all
    assert sorted(line.partition(":")[0] for line in done.out.splitlines()) == ["harvest", "moon", "tides"]
    assert "7 calls: 5 model, 2 tool" in done.err
    for seed in ("1", "2"):
        again = scripts.replay(env={"PYTHONHASHSEED": seed})
        assert again.code == 0, again.all
        assert again.out.startswith(done.out + "-- IDENTICAL  7/7 calls")


FOUND = """
import functools
from beside import imported, early
def plain(n): return n * 2
def decorated_by(function):
    @functools.wraps(function)
    def inner(*args, **kwargs): return function(*args, **kwargs)
    return inner
@decorated_by
def decorated(n): return n * 2
@functools.cache
def cached(n): return n * 2
def make(k):
    def closure(n): return n * k
    return closure
closure = make(2)
def defaults(n, *, k=2): return n * k
def _hidden(n): return n * 2
TABLE = {"hidden": _hidden}
def halves(n): return n * 2
partial = functools.partial(halves)
def dispatch(name, **arguments):
    return (here.get(name) or TABLE.get(name) or globals()[name])(**arguments)
here = dict(early=early)
"""
NAMES = ("imported", "early", "plain", "decorated", "cached", "closure", "defaults", "hidden", "partial")


def test_tools_are_found_by_name(scripts: Scripts) -> None:
    (scripts.folder / "beside.py").write_text("def imported(n): return n * 2\ndef early(n): return n * 2\n")
    done = record(scripts, scripts.write(tool_script(FOUND, NAMES)), asking(*NAMES))
    assert done.out == "".join(f"{name} 4\n" for name in NAMES) + "done\n", done.all
    assert f"{2 + len(NAMES)} calls: 2 model, {len(NAMES)} tool" in done.err
    assert "not recorded: nothing" in done.err
    recording = scripts.recording()
    calls = {call.name: recording.request(call) for call in recording.calls if call.type == "tool"}
    assert list(calls) == list(NAMES)
    assert calls["defaults"] == {"args": {"n": 2, "k": 2}}
    assert calls["plain"] == {"args": {"n": 2}}
    again = scripts.replay()
    assert again.code == 0, again.all


MISSING = """
from textwrap import dedent as foreign
class Tools:
    def bound(self, n): return n
    def method(self, n): return n
bound = Tools().bound
builtin = abs
def generator(n): yield n
def dispatch(name, **arguments): return name
dispatcher = dispatch
"""
WHY = {
    "absent": "no function of that name",
    "method": "a method of Tools, not a plain function",
    "bound": "a bound method, not a plain function",
    "builtin": "a built-in function, not a plain function",
    "foreign": "a function of textwrap, not of the program",
    "generator": "a generator function",
}


def test_what_cannot_be_wrapped_is_said(scripts: Scripts) -> None:
    done = record(scripts, scripts.write(tool_script(MISSING, tuple(WHY))), asking(*WHY))
    assert done.code == 0, done.all
    for name, why in WHY.items():
        assert f"tool {name} ({why})" in done.err
    assert "2 calls: 2 model" in done.err
    assert scripts.replay().code == 0


def test_what_a_tool_prints_and_raises_comes_back(scripts: Scripts) -> None:
    text = tool_script(
        "def work(n):\n"
        "    print('working', n)\n"
        "    open('effect.txt', 'a').write('x')\n"
        "    raise LookupError('no such order')\n"
        "def dispatch(name, **arguments): return work(**arguments)"
    )
    done = record(scripts, scripts.write(text), asking("work"))
    assert done.out == "working 2\nerror LookupError no such order\ndone\n"
    assert "not recorded: nothing" in done.err
    again = scripts.replay()
    assert again.code == 0, again.all
    assert again.out.startswith(done.out)
    assert (scripts.folder / "effect.txt").read_text() == "x"


def test_values_of_the_programs_own_types_come_back(scripts: Scripts) -> None:
    text = tool_script(
        "import dataclasses, enum, decimal\n"
        "class Kind(enum.Enum):\n    GOOD = 1\n"
        "@dataclasses.dataclass\nclass Order:\n    kind: Kind\n    total: decimal.Decimal\n"
        "def work(n): return Order(Kind.GOOD, decimal.Decimal('40.00'))\n"
        "def dispatch(name, **arguments): return work(**arguments)"
    )
    done = record(scripts, scripts.write(text), asking("work"))
    assert done.out.startswith("work Order(kind=<Kind.GOOD: 1>, total=Decimal('40.00'))\n"), done.all
    assert scripts.replay().code == 0


def test_an_argument_that_cannot_be_recorded_passes_and_is_refused_on_replay(scripts: Scripts) -> None:
    text = tool_script(
        "class Connection: pass\n"
        "def work(connection, n): return n * 2\n"
        "def dispatch(name, n): return work(Connection(), n)"
    )
    done = record(scripts, scripts.write(text), asking("work"))
    assert done.out == "work 4\ndone\n", done.all
    assert "tool work: args.connection" in done.err
    again = scripts.replay()
    assert again.code == 3
    assert "tool work" in again.out


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_result_that_cannot_be_recorded_is_given_as_it_is_and_refused_on_replay(
    scripts: Scripts, kind: str
) -> None:
    call = "work(n)" if kind == "def" else "__import__('asyncio').run(work(n))"
    text = tool_script(
        "class Row:\n    def __init__(self, n): self.n = n\n"
        f"{kind} work(n):\n    print('looked up')\n    return Row(n)\n"
        f"def dispatch(name, n): return {call}.n"
    )
    done = record(scripts, scripts.write(text), asking("work"))
    assert done.out == "looked up\nwork 2\ndone\n", done.all
    assert "tool work: " in done.err
    again = scripts.replay()
    assert again.code == 3, again.all
    assert "tool work" in again.out


def test_calls_in_threads_are_calls_of_the_run(scripts: Scripts) -> None:
    text = """
        from concurrent.futures import ThreadPoolExecutor
        import httpx2, os
        def ask(word):
            url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
            return httpx2.post(url, json={"model": "m", "messages": []}).json()["choices"][0]["message"]["content"]
        with ThreadPoolExecutor(2) as pool:
            print(list(pool.map(ask, ["a"])))
        """
    done = record(scripts, scripts.write(text), ["one"])
    assert done.out == "['one']\n", done.all
    assert "1 call: 1 model" in done.err
    assert "not recorded: nothing" in done.err
    again = scripts.replay()
    assert again.code == 0, again.all


def test_several_event_loops_and_every_way_to_start_one(scripts: Scripts) -> None:
    text = """
        import asyncio
        from openai import AsyncOpenAI, OpenAI
        async def ask(word):
            async with asyncio.timeout(30), AsyncOpenAI() as client:
                answer = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": word}])
            return answer.choices[0].message.content
        async def both():
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(word)) for word in "ab"]
            return [task.result() for task in tasks], await asyncio.to_thread(sync, "t")
        def sync(word):
            message = {"role": "user", "content": word}
            return OpenAI().chat.completions.create(model="m", messages=[message]).choices[0].message.content
        print(asyncio.run(both()))
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            print(runner.run(ask("r")), runner.run(ask("s")))
        loop = asyncio.new_event_loop()
        print(loop.run_until_complete(ask("l")))
        loop.close()
        print(sync("end"))
        """

    def answer(seen: Seen) -> str:
        return "re " + str(seen.body["messages"][0]["content"])

    done = record(scripts, scripts.write(text), answer)
    assert done.out == "(['re a', 're b'], 're t')\nre r re s\nre l\nre end\n", done.all
    assert "7 calls: 7 model" in done.err
    again = scripts.replay()
    assert again.code == 0, again.all


def test_an_agent_function_takes_the_same_path(scripts: Scripts) -> None:
    text = """
        import agentloom
        from openai import AsyncOpenAI
        @agentloom.agent
        async def support(number: int, note: str = "none"):
            async with AsyncOpenAI() as client:
                answer = await client.chat.completions.create(model="m", messages=[])
            return {"number": number, "note": note, "text": answer.choices[0].message.content}
        """
    path = scripts.write(text, "support.py")
    with FakeProvider(["fine"]) as provider:
        done = scripts.call("run", f"{path}:support", "--", "812", "note=urgent", env=provider.env())
    assert done.code == 0, done.all
    assert json.loads(done.out) == {"number": 812, "note": "urgent", "text": "fine"}
    assert "1 call: 1 model" in done.err
    again = scripts.replay()
    assert again.code == 0, again.all
    assert "IDENTICAL  1/1 calls" in again.out


def test_a_streamed_answer_is_shown_put_together(scripts: Scripts) -> None:
    text = tool_script("", ()).partition("tools =")[0] + (
        "request = {'model': 'm', 'messages': [{'role': 'user', 'content': 'go'}], 'stream': True}\n"
        "with httpx2.stream('POST', URL, json=request) as answer:\n"
        "    print(len(answer.read()) > 0)\n"
    )
    done = record(scripts, scripts.write(text), ["It rains in Oslo."])
    assert done.code == 0, done.all
    out = scripts.call("show", "last", "1").out
    assert 'outcome\n  text  "It rains in Oslo."\n' in out
    assert "put together above; --all shows each" in out


def test_two_runs_with_the_same_answers_are_the_same(scripts: Scripts) -> None:
    text = tool_script(
        "def work(n):\n    print('working')\n    return {'left': n}\n"
        "def dispatch(name, **arguments): return work(**arguments)"
    )
    path = scripts.write(text)
    # Answers in order of arrival on one server: every request has an id and headers of its own.
    with FakeProvider([*asking("work"), *asking("work")]) as provider:
        runs = [
            json.loads(scripts.call("run", "--json", str(path), env=provider.env()).out) for _ in range(2)
        ]
    found = scripts.call("diff", runs[0]["run"], runs[1]["run"])
    assert found.code == 0, found.all
    assert found.out.startswith("SAME: 3 calls and the output are equal."), found.all
    scripts.write(text.replace("n}", "n + 1}"))
    changed = record(scripts, path, asking("work"))
    assert changed.code == 0, changed.all
    parts = scripts.call("diff", runs[0]["run"], "last")
    assert "result.left   2  ->  3" in parts.out
    assert "cause   code changed: work()" in parts.out
