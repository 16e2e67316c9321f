"""Keys as literals in the agent's own source, without telling names: the trace holds the source, not the keys."""

from __future__ import annotations

import random
import string
import subprocess
import sys
from pathlib import Path

from agentloom import Trace
from agentloom.store import open_store
from tests.secrets.shapes import holds

SEED = 20261128
ALNUM = string.ascii_letters + string.digits
PROGRAM = """
import sys
from agentloom import agent, tool

class Client:
    def __init__(self, key, region="eu"):
        self.key = key

openai = Client("{openai}")
anthropic = Client(key='{anthropic}')
TABLE = {{"eu": Client("{aws}", "eu"), "us": ("{github}", 7)}}
def google(place, given="{google}"):
    return Client(given + f"{stripe}")
mine = Client("{unknown}")

@tool(effect="read")
def look(text):
    return text

@agent
def works(text):
    return look(text) + str(len(TABLE)) + google("eu").key[:0] + openai.key[:0]

print(works.run("x", store=sys.argv[1]).run_id)
"""


def keys() -> dict[str, str]:
    """Made at run time, in the forms that their issuers document."""
    rng = random.Random(SEED)

    def some(count: int, letters: str = ALNUM) -> str:
        return "".join(rng.choice(letters) for _ in range(count))

    return {
        "openai": "sk-" + "proj-" + some(60) + "T3Blbk" + "FJ" + some(60),
        "anthropic": "sk-" + "ant-api03-" + some(93) + "AA",
        "aws": "AK" + "IA" + some(16, string.ascii_uppercase + "234567"),
        "github": "gh" + "p_" + some(36),
        "google": "AI" + "za" + some(35),
        "stripe": "sk" + "_live_" + some(24),
        "unknown": some(32, "0123456789abcdef"),
    }


def test_keys_of_known_forms_are_not_in_the_recorded_source(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    made = keys()
    program, store = tmp_path / "program.py", tmp_path / "store"
    program.write_text(PROGRAM.format(**made))
    done = subprocess.run(
        [sys.executable, str(program), str(store)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    trace = Trace.open("last", store=open_store(str(store)))
    (file,) = store.glob("runs/*.loom")
    assert b"class Client" in file.read_bytes()
    for name, key in made.items():
        if name != "unknown":
            assert holds(store, key) == [], name
    # What a detector cannot know stands as it was written (docs/secrets.md).
    assert holds(store, made["unknown"]) != []
    assert trace.output == "x2"
