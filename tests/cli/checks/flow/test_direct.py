"""What is a finding by itself: effects, hashes, what is refused, what comes past the guard."""

from __future__ import annotations

import pytest

from tests.cli.checks.flow.agents import findings, names, of_script


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("open(given, 'w')", "unrecorded-effect"),
        ("open(given, mode='ab')", "unrecorded-effect"),
        ("open(given)", "unrecorded-effect"),
        ("import os\nos.remove(given)", "unrecorded-effect"),
        ("import pathlib\npathlib.Path(given).write_text('x')", "unrecorded-effect"),
        ("from pathlib import Path\n(Path(given) / 'a').read_text()", "unrecorded-effect"),
        ("import subprocess as s\ns.run(given)", "unrecorded-effect"),
        ("import sqlite3\nsqlite3.connect('a.db')", "unrecorded-effect"),
        ("import smtplib\nsmtplib.SMTP(given)", "unrecorded-effect"),
        ("import os\nos.umask(0)", "unrecorded-effect"),
        ("import sys\nsys.stdin.read()", "unrecorded-effect"),
        ("hash(given)", "hash"),
        ("id(given)", "address"),
        ("import os\nos.getpid()", "machine"),
        ("import numpy as np\nnp.random.rand()", "unseen-random"),
        ("import _random\n_random.Random()", "unseen-random"),
    ],
)
def test_found_in_an_agent(body: str, name: str) -> None:
    assert names(body) == [name]


@pytest.mark.parametrize(
    "body",
    [
        "with allow('file.write', reason='x'): open(given, 'w')",
        "import sqlite3\nsqlite3.connect(':memory:')",
        "hash(3)",
        "import requests, urllib.request\nrequests.get(given)\nurllib.request.urlopen(given)",
        "import time, random, uuid\nsearch([time.time(), random.random(), uuid.uuid4()])",
        "import os\nsearch([os.getcwd(), os.environ['X'], os.uname()])",
        "import numpy\nsearch(numpy.random.default_rng(1).random())",
        "import locale\nlocale.setlocale(locale.LC_ALL)",
    ],
)
def test_clean_in_an_agent(body: str) -> None:
    assert names(body) == []


def test_tools_may_do_what_they_like() -> None:
    before = (
        "@tool(effect='write')\ndef save(x): open(x, 'w'); hash(x); helper(x)\ndef helper(x): open(x, 'w')"
    )
    assert names("save(given)", before=before) == []


def test_a_script_reads_with_a_note_and_writes_with_a_warning() -> None:
    found = findings("open('a').read()\nopen('b', 'w')\n")
    assert [(one.line, one.check, one.level) for one in found] == [
        (1, "unrecorded-read", "note"),
        (2, "unrecorded-effect", "warning"),
    ]
    assert of_script("id(3)") == []


def test_a_guard_that_lets_reads_through() -> None:
    text = "from agentloom import agent\n@agent(guard='virtual')\ndef run(x): return open(x).read()\n"
    assert [one.check for one in findings(text)] == ["unrecorded-read"]


def test_a_seeded_generator_of_a_script() -> None:
    text = "import numpy as np\nnp.random.seed(1)\nprint(np.random.rand())\n"
    assert of_script(text) == []
    assert of_script(text.replace("np.random.seed(1)\n", "")) == [(2, "unseen-random")]


def test_clocks_in_containers() -> None:
    assert names("search(given)", before="import time\nCLOCK = {'a': time.time}") == ["hidden-clock"]
    assert names(
        "search(given)", before="from functools import partial\nimport time\nC = partial(time.time)"
    ) == ["hidden-clock"]
    assert names("import time\nclock = [time.time]\nsearch(clock)") == []
