"""A known secret as programs write it: escaped for a page, a shell, a table, a text in texts. Each form is hidden, and
a program that writes it gets the same text on replay, where it has a placeholder."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import quopri
import random
import re
import shlex
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from xml.sax import saxutils

import pytest

from agentloom import secrets
from agentloom.format.canonical import Tree
from agentloom.runtime.redaction import Redactor
from tests.secrets.shapes import holds

SEED = 20261128
ODD = "p&ss<w>\"rd'-p\u00e9\u0436\U0001f600\\82 37=/%42"
"""A password with everything in it that somebody escapes."""


def in_json(times: int, *, ascii_: bool = True, last: bool | None = None) -> Callable[[str], str]:
    def write(text: str) -> str:
        for number in range(times):
            kept = ascii_ if last is None or number < times - 1 else last
            text = json.dumps({"x": text}, ensure_ascii=kept)
        return text

    return write


def table(text: str) -> str:
    out = io.StringIO()
    csv.writer(out).writerow([1, text, "x"])
    return out.getvalue()


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


EXACT: dict[str, Callable[[str], str]] = {
    "html": lambda text: f"<b>{html.escape(text)}</b>",
    "html, without quotes": lambda text: f"<b>{html.escape(text, quote=False)}</b>",
    "markup": lambda text: html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "xml": lambda text: f"<b>{saxutils.escape(text)}</b>",
    "xml, all five": lambda text: saxutils.escape(text, {'"': "&quot;", "'": "&apos;"}),
    "xml, in ASCII": lambda text: html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
    "shell": lambda text: f"login --with {shlex.quote(text)} --now",
    "shell, by backslash": lambda text: "login " + shlex.quote(text).replace("'\"'\"'", "'\\''"),
    "table": table,
    "url": lambda text: f"https://x.test/?q={quoted(text)}",
    "url twice": lambda text: f"https://x.test/?q={quoted('https://y.test/?k=' + quoted(text))}",
    "url thrice": lambda text: quoted(quoted(quoted(text))),
    "form in a url": lambda text: quoted(urllib.parse.urlencode({"k": text})),
    "as a browser": lambda text: urllib.parse.quote(text, safe="!'()*"),
    "lower-case url": lambda text: re.sub("%..", lambda found: found[0].lower(), quoted(text)),
    "quoted-printable": lambda text: quopri.encodestring(text.encode()).decode(),
    "html in JSON": lambda text: json.dumps({"page": html.escape(text)}),
    "html in JSON in JSON": lambda text: json.dumps([json.dumps({"page": html.escape(text)})]),
    "url in html": lambda text: html.escape(f"https://x.test/?a=1&k={quoted(text)}"),
    **{f"JSON {times} deep": in_json(times) for times in range(1, 6)},
    **{f"JSON {times} deep, letters as they are": in_json(times, ascii_=False) for times in range(1, 5)},
    **{f"JSON {times} deep, mixed": in_json(times, ascii_=False, last=True) for times in range(2, 5)},
}  # fmt: skip
"""What gives the same text again on replay."""

HIDDEN: dict[str, Callable[[str], str]] = {
    "repr": repr,
    "ascii": ascii,
    "repr of bytes": lambda text: repr(text.encode()),
    "yaml": lambda text: "key: '" + text.replace("'", "''") + "'",
    "sql": lambda text: "select '" + text.replace("'", "''") + "'",
}
"""Quoted in a way that depends on what is quoted: hidden, but a replay writes other quotes."""


@pytest.mark.parametrize("how", EXACT)
@pytest.mark.parametrize("value", [ODD, "plain-k9-82374290", "'82374\" & go"], ids=["odd", "plain", "quotes"])
def test_what_is_written_is_what_a_replay_writes(how: str, value: str) -> None:
    redactor = Redactor(secrets(values=[value]))
    write = EXACT[how]
    kept = redactor.tree({"m": write(value)})
    assert kept == {"m": write("__redacted_1__")}


@pytest.mark.parametrize("how", HIDDEN)
def test_what_is_quoted_otherwise_is_hidden(how: str) -> None:
    redactor = Redactor(secrets(values=[ODD]))
    kept = redactor.tree({"m": HIDDEN[how](ODD)})
    text = json.dumps(kept)
    assert "__redacted_1__" in text
    assert not any(piece in text for piece in ("ss<w", "82 37", "82\\u", "p&ss")), text


@pytest.mark.parametrize("value", ["3f9a" * 8, "AB3D9F" * 4, "Tk9s-82hW_qq7XzA41"])
def test_the_letters_of_a_key_in_another_case(value: str) -> None:
    redactor = Redactor(secrets(values=[value]))
    kept = redactor.tree({"m": [f"id {value.upper()}.", f"id {value.lower()}.", value]})
    assert kept == {"m": ["id " + ("__REDACTED_1__" if value.upper() != value else "__redacted_1__") + ".",
                          "id __redacted_1__.", "__redacted_1__"]}  # fmt: skip


def test_words_and_short_keys_are_known_as_they_are_written_alone() -> None:
    redactor = Redactor(secrets(values=["OurProductionDatabaseName", "Ab3-x9f2"]))
    tree: Tree = {"m": "ourproductiondatabasename ab3-x9f2 AB3-X9F2"}
    assert redactor.tree(tree) is tree


@pytest.mark.parametrize("form", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("value", [ODD, "plain-k9-82374290"], ids=["odd", "plain"])
def test_text_in_two_bytes_a_letter(form: str, value: str) -> None:
    redactor = Redactor(secrets(values=[value]))
    assert redactor.bytes_of(f"so: {value}!".encode(form)) == "so: __redacted_1__!".encode(form)


@pytest.mark.parametrize("size", [65, 500, 3000])
def test_long_values_that_begin_alike_are_told_apart(size: int) -> None:
    rng = random.Random(SEED)
    values = ["k" * size + str(rng.randrange(10**9)) for _ in range(3)]
    redactor = Redactor(secrets(values=values))
    said = " ".join(values)
    assert redactor.tree({"m": [said, values[1], "k" * size, html.escape(values[2])]}) == {
        "m": ["__redacted_1__ __redacted_2__ __redacted_3__", "__redacted_2__", "k" * size, "__redacted_3__"]
    }


RUN = """
import sys
sys.path.insert(0, {tests!r})
import os
from agentloom import agent, tool, Trace
from tests.secrets.test_spellings import EXACT, HIDDEN

@tool
def use(what, text):
    return text

@agent
def writes():
    key = os.environ["ACME_API_KEY"]
    for name, write in EXACT.items():
        use(name, write(key))
    return os.environ["ACME_TOKEN"].upper(), os.environ["ACME_TOKEN"].lower()

if sys.argv[1] == "record":
    print(writes.run(store={store!r}).run_id)
else:
    print(Trace.load(sys.argv[2]).replay(agent=writes))
"""


def test_a_run_replays_without_the_secret(tmp_path: Path) -> None:
    root, store = Path(__file__).parents[2], tmp_path / "store"
    program = tmp_path / "program.py"
    program.write_text(RUN.format(tests=str(root), store=str(store)))
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"}

    def python(*args: str, **env: str) -> str:
        done = subprocess.run([sys.executable, str(program), *args], capture_output=True, text=True, check=False,
                              env={**base, **env}, cwd=tmp_path, encoding="utf-8")  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    python("record", ACME_API_KEY=ODD, ACME_TOKEN="Tk9s-82hW_qq7XzA41")
    for part in ("ss<w>", "82 37", "p&ss", "82hW_qq7", "82HW_QQ7", "82hw_qq7"):
        assert holds(store, part) == []
    (file,) = store.glob("runs/*.loom")
    said = python("replay", str(file))
    assert said.startswith("IDENTICAL"), said
