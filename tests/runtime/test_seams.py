"""SDK calls in a run are recorded without anybody turning it on; who has no SDK pays nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.testing import FakeProvider, Says

BARE = """
import sys
import agentloom

@agentloom.agent
def plain() -> int:
    return 1

assert plain.run().output == 1
loaded = {name for name in sys.modules if name.startswith("agentloom.adapters")}
assert not loaded, loaded
assert "importlib.metadata" not in sys.modules
"""

AGENT = """
import sys
import agentloom
{early}

@agentloom.agent(guard="{guard}")
{kind} ask(url: str) -> str:
    import openai
    client = openai.{client}(base_url=url, api_key="unused")
    reply = {wait} client.chat.completions.create(model="m", messages=[{{"role": "user", "content": "Hi"}}])
    return reply.choices[0].message.content

if sys.argv[1] == "record":
    trace = ask.run(sys.argv[2])
    assert [call.kind for call in trace.calls] == ["model"], trace.calls
    assert not trace.unrecorded, trace.unrecorded
    trace.save("run.loom")
else:
    trace = agentloom.Trace.load("run.loom")
    report = trace.replay(agent=ask)
    assert report.verdict == "identical", report
assert trace.output == "Hello.", trace.output
"""


def python(code: str, *arguments: str, folder: Path, seed: str = "0") -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTLOOM", "OPENAI"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env=kept | {"PYTHONHASHSEED": seed},
    )
    assert done.returncode == 0, done.stderr


def test_a_program_without_sdks_loads_no_adapter(tmp_path: Path) -> None:
    python(BARE, folder=tmp_path)


ASYNC = ("async def", "AsyncOpenAI", "await")


@pytest.mark.parametrize(
    ("early", "program", "guard"),
    [
        ("", ASYNC, "strict"),
        ("import openai", ASYNC, "strict"),
        ("import httpx", ASYNC, "off"),
        ("", ("def", "OpenAI", ""), "strict"),
    ],
)
def test_an_sdk_is_recorded_whenever_it_is_imported(
    tmp_path: Path, early: str, program: tuple[str, str, str], guard: str
) -> None:
    kind, client, wait = program
    code = AGENT.format(early=early, kind=kind, client=client, wait=wait, guard=guard)
    with FakeProvider([Says("Hello.")]) as provider:
        python(code, "record", provider.openai_url, folder=tmp_path)
    python(code, "replay", folder=tmp_path, seed="7")


def test_an_adapter_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    metadata = tmp_path / "other-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[agentloom.seams]\nother = no_such_module:watch\n")
    python(
        "import sys, warnings\n"
        f"sys.path.append({str(tmp_path)!r})\n"
        "from agentloom.runtime import seams\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    seams.load_seams()\n"
        "assert any('the adapter other (no_such_module:watch)' in str(one.message) for one in said), said\n"
        "import httpx2\n"
        "assert httpx2.__agentloom__\n",
        folder=tmp_path,
    )
