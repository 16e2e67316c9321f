"""What calls give."""

from __future__ import annotations

import pytest

from tests.cli.checks.flow.agents import names, of_agent

CUSTOMER = "class Customer:\n    def __init__(self, name): self.name = name"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("search(f'{Customer(given)}')", ["address"]),
        ("search(str(Customer(given)))", ["address"]),
        ("search(Customer(given).name)", []),
        ("search(str([Customer(given)]))", ["address"]),
        ("c = Customer(given)\nraise ValueError(f'no {c}')", ["address"]),
        ("search(f'{object()}')", ["address"]),
        ("search(f'{run}')", ["address"]),
        ("search(str(given))", []),
        ("import json\nsearch(json.dumps(Customer(given), default=str))", ["address"]),
        ("import json\nsearch(json.dumps(given, default=str))", ["json-default"]),
        ("import json\nsearch(json.dumps(given, default=list))", ["set-order"]),
        ("import json\nsearch(json.dumps(given))", []),
        ("import traceback\nsearch(traceback.format_exc())", ["traceback"]),
        ("def inner(x): return list(x)\nsearch(inner(tags))", ["set-order"]),
        ("from pathlib import Path\nsearch(Path(__file__).name)", []),
        ("from pathlib import Path\nsearch(str(Path(__file__)))", ["folder"]),
    ],
)
def test_calls(body: str, found: list[str]) -> None:
    assert names(body, before=CUSTOMER) == found


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("import time\nX = time.time()", "import-time"),
        ("from datetime import datetime as d\nX = d.now().isoformat()", "import-time"),
        ("import uuid\nX = str(uuid.uuid4())", "import-time"),
        ("import random\nX = random.choice('ab')", "import-time"),
        ("import os\nX = os.getcwd()", "folder"),
        ("import os\nX = os.path.expanduser('~')", "folder"),
        ("import socket\nX = socket.gethostname()", "machine"),
        ("import sys\nX = sys.argv[1]", "arguments"),
        ("import os\nX = os.getenv('NAME')", "environment"),
        ("import os\nX = os.environ['NAME']", "environment"),
        ("import os\nX = sorted(os.environ)", ""),
        ("import os\nX = os.environ['OPENAI_API_KEY']", ""),
        ("import random\nX = random.Random(1).random()", ""),
        ("import glob\nX = glob.glob('*')", "listing-order"),
        ("import glob\nX = sorted(glob.glob('*'))", ""),
    ],
)
def test_what_comes_from_import(before: str, found: str) -> None:
    assert names("search(f'{X}')", before=before) == ([found] if found else [])


def test_a_default_is_from_import() -> None:
    before = "import time\ndef stamp(x, at=time.time()): return f'{x} {at}'"
    assert of_agent("search(stamp(given))", before=before) == [(-2, "import-time")]
