"""Lines on terminals and in pipes: colours, width, and text that tries to steer the terminal."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from agentloom.cli.options import Settings
from agentloom.cli.render import Screen, clean, duration, shorten, size, table, wants_color


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("setting", "env", "terminal", "color"),
    [
        (None, {}, True, True),
        (None, {}, False, False),
        (None, {"NO_COLOR": "1"}, True, False),
        (None, {"NO_COLOR": ""}, True, True),
        (None, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        (None, {"FORCE_COLOR": "1"}, False, True),
        (None, {"TERM": "dumb"}, True, False),
        (False, {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_decides_about_colour(
    setting: bool | None, env: dict[str, str], *, terminal: bool, color: bool
) -> None:
    assert wants_color(setting, Terminal() if terminal else io.StringIO(), env) is color


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Grüße 東京", "Grüße 東京"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp", "\\u202egnp"),
        ("\ud800", "\\ud800"),
        ("\u2028", "\\u2028"),
        ("\x00\x7f", "\\x00\\x7f"),
    ],
)
def test_text_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown
    out = io.StringIO()
    Screen(Settings(), out).line(text, ("bad", text))
    assert out.getvalue() == shown * 2 + "\n"


def test_a_wide_line_is_cut_on_a_terminal_and_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    terminal, pipe = Terminal(), io.StringIO()
    Screen(Settings(), terminal).line("x" * 200)
    Screen(Settings(), pipe).line("x" * 200)
    assert pipe.getvalue() == "x" * 200 + "\n"
    assert len(terminal.getvalue().strip()) == 50


def test_styles_are_drawn_on_a_terminal_only() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for out in (terminal, pipe):
        Screen(Settings(), out).line(("bad", "DIVERGED"), " call 1")
    assert pipe.getvalue() == "DIVERGED call 1\n"
    assert "\x1b[1;31mDIVERGED\x1b[0m call 1" in terminal.getvalue()


def test_markup_in_text_is_text() -> None:
    terminal = Terminal()
    Screen(Settings(), terminal).line("[bold]x[/bold] :smile:")
    assert "[bold]x[/bold] :smile:" in terminal.getvalue()


def test_notes_are_quiet_with_q_and_json() -> None:
    for settings, shown in ((Settings(), "n\n"), (Settings(quiet=True), ""), (Settings(json=True), "")):
        err = io.StringIO()
        Screen(settings, io.StringIO(), err).note("n")
        assert err.getvalue() == shown


def test_details_need_v() -> None:
    for verbosity, shown in ((0, ""), (1, "d\n")):
        err = io.StringIO()
        Screen(Settings(verbosity=verbosity), io.StringIO(), err).detail("d")
        assert err.getvalue() == shown


def test_json_is_ascii_and_survives_surrogates() -> None:
    out = io.StringIO()
    Screen(Settings(json=True), out).data({"x": "é\ud800"})
    assert out.getvalue() == '{\n  "x": "\\u00e9\\ud800"\n}\n'


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 us"),
        (900_000, "900 us"),
        (31_000_000, "31 ms"),
        (5_100_000_000, "5.1 s"),
        (200_000_000_000, "3 min 20 s"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("count", "text"), [(812, "812 B"), (9400, "9.4 KB"), (1_200_000, "1.2 MB"), (3 * 10**12, "3.0 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_shorten_keeps_one_line() -> None:
    assert shorten("one\ntwo", 20) == "one\\ntwo"
    assert shorten("x" * 30, 10) == "x" * 7 + "..."


def test_table_aligns_all_but_the_last_column() -> None:
    assert table([["a", "bb", "c"], ["aaa", "b", "cc"], []]) == ["a    bb  c", "aaa  b   cc", ""]


def test_rich_is_loaded_for_a_terminal_only() -> None:
    code = (
        "import sys\nfrom agentloom.cli.main import main\nmain(['completion', 'bash'])\n"
        "print('rich' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "False\n"
    parent, child = pty.openpty()
    try:
        code = "from agentloom.cli.options import Settings; Settings().screen().line(('bad', 'x'))"
        env = os.environ | {"TERM": "xterm-256color"}
        subprocess.run([sys.executable, "-c", code], stdout=child, check=True, env=env)
        assert b"\x1b[1;31mx" in os.read(parent, 1000)
    finally:
        os.close(parent)
        os.close(child)
