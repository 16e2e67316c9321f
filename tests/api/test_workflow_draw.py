"""Drawings: every step and edge is there, every label is escaped, and of a run one sees which way it went."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from typing import Any

import pytest

import agentloom
from agentloom import Trace, Workflow, goto
from agentloom.errors import WorkflowError
from agentloom.store import MemoryStore
from tests.api.workflow_programs import Broken, generate

ODD = 'a"b#c;<d>&`e`\\{x}[y](z)|%%\n-->'

TEXT = r'"(?:[^"#<>&`\\{}\[\]()|;\n]|#\d+;|<br/>)*"'
MERMAID = re.compile(
    rf"flowchart TD|    input\(\(input\)\)"
    rf"|    s\d+(?:\[{TEXT}\]|\({TEXT}\)|\{{{TEXT}\}}|\[/{TEXT}/\]|\(\[{TEXT}\]\)|\[\[{TEXT}\]\]|\{{\{{{TEXT}\}}\}})"
    rf"|    (?:s\d+|input) (?:-->|==>|-\.->|==>\|chosen\||-\. {TEXT} \.->|== {TEXT} ==>) s\d+"
    r"|    classDef \w+ [\w:#,. -]+|    class s\d+(?:,s\d+)* \w+"
)
"""The lines that we write. Checked once by hand against mermaid 11's own parser, which reads them all."""

STRING = r'"(?:[^"\\\n]|\\.)*"'
ID = rf"(?:\w+|{STRING})"
DOT = re.compile(rf"digraph \{{|\}}|    {ID}(?: -> {ID})?(?: \[{ID}={ID}(?:, {ID}={ID})*\])?;")


def checked(text: str, form: str) -> str:
    """``text``, each line of which is one of the grammar."""
    grammar = MERMAID if form == "mermaid" else DOT
    for line in text.splitlines():
        assert grammar.fullmatch(line), line
    dot = shutil.which("dot")
    if form == "dot" and dot is not None:
        subprocess.run([dot, "-Tsvg"], input=text.encode(), check=True, capture_output=True)
    return text


@agentloom.tool(effect="read")
def lookup(order: int) -> str:
    """A tool."""
    return str(order)


@agentloom.agent
async def helper(order: int) -> str:
    """An agent."""
    return str(order)


def every_kind() -> Workflow:
    graph = Workflow("kinds").step("ask", model=["gpt-4o", ODD])
    graph.step("route", fn=lambda state: goto("ask") if state.visit == 1 else goto("tool"), loop={"ask": 3})
    graph.step("tool", tool=lookup, args={"order": 1}).step(
        "agent", agent=helper, args={"order": 1}, after="route"
    )
    inner = Workflow(ODD).step("one", fn=lambda state: 1)
    graph.step("sub", workflow=inner, after="route", when=lambda state: True)
    return graph.verify("Prüfung", inputs=["sub"], fn=lambda state: 1, each="route", after=["sub", "tool"])


def test_mermaid_has_every_step_and_edge() -> None:
    lines = checked(every_kind().draw(), "mermaid").splitlines()
    assert lines[1:5] == [
        "    input((input))",
        (
            '    s0["ask<br/>model gpt-4o, else a#34;b#35;c#59;#60;d#62;#38;#96;e#96;#92;#123;x#125;'
            '#91;y#93;#40;z#41;#124;%% --#62;"]'
        ),
        '    s1{"route<br/>fn"}',
        '    s2[/"tool<br/>tool lookup"/]',
    ]
    assert lines[5] == '    s3(["agent<br/>agent helper"])'
    assert lines[7] == '    s5{{"Prüfung<br/>verify, fn<br/>for each of route"}}'
    assert lines[8:] == [
        "    input --> s0",
        "    s0 --> s1",
        "    s1 --> s2",
        "    s1 --> s3",
        "    s1 --> s4",
        "    s4 --> s5",
        "    s2 --> s5",
        '    s1 -. "at most 3" .-> s0',
    ]


def test_dot_has_every_step_and_edge() -> None:
    text = checked(every_kind().draw("dot"), "dot")
    assert '    "route" [label="route\\nfn", shape=diamond];' in text
    assert '"ask" [label="ask\\nmodel gpt-4o, else a\\"b#c;<d>&`e`\\\\{x}[y](z)|%% -->", shape=box];' in text
    assert '    "route" -> "ask" [label="at most 3", style=dashed, constraint=false];' in text
    assert text.count(" -> ") == 8


def drawn(graph: Workflow, form: Any = "mermaid") -> str:
    """The way of a run of ``graph``; one that fails is drawn too."""
    store = MemoryStore()
    with contextlib.suppress(ZeroDivisionError, Broken):
        graph.run("in", store=store)
    return checked(graph.draw(form, run=Trace.open("last", store)), form)


def chosen() -> Workflow:
    graph = Workflow("chosen").step(
        "route", fn=lambda state: goto("b", 1) if state.visit > 1 else goto("route", 1), loop={"route": 2}
    )
    graph.step("a", fn=lambda state: 1).step("b", fn=lambda state: 1, after="route")
    return graph.step("c", fn=lambda state: 1, after=["a", "b"], when=lambda state: False)


def test_of_a_run_it_shows_the_way() -> None:
    lines = drawn(chosen()).splitlines()
    assert '    s0{"route<br/>fn<br/>ran 2 times"}' in lines
    assert '    s1("a<br/>fn<br/>not reached")' in lines
    assert '    s3("c<br/>fn<br/>only when<br/>skipped")' in lines
    assert "    s0 -.-> s1" in lines
    assert "    s0 ==> s2" in lines
    assert '    s0 == "1 of 2" ==> s0' in lines
    assert [line.split()[1:] for line in lines if line.startswith("    class ")] == [
        ["s0,s2", "ran"],
        ["s3", "skipped"],
        ["s1", "nottaken"],
    ]


def test_of_a_failed_run_it_shows_where() -> None:
    graph = Workflow("fails").step("a", fn=lambda state: 1).step("b", fn=lambda state: 1 / 0)
    text = drawn(graph.step("c", fn=lambda state: 1), "dot")
    assert '"b" [label="b\\nfn\\nfailed", shape=ellipse, color=red, penwidth=3];' in text
    assert '"c" [label="c\\nfn\\nnot reached"' in text
    assert '"a" -> "b" [penwidth=2, color=darkgreen];' in text


def test_a_choice_over_steps_is_drawn_as_an_edge_of_its_own() -> None:
    graph = Workflow("over").step("a", fn=lambda state: goto("c")).step("b", fn=lambda state: 1)
    lines = drawn(graph.step("c", fn=lambda state: 1)).splitlines()
    assert "    s0 ==>|chosen| s2" in lines


@pytest.mark.parametrize("seed", range(12))
def test_random_workflows_and_their_runs_are_drawn(seed: int) -> None:
    program = generate(seed)
    forms: tuple[Any, ...] = ("mermaid", "dot")
    for form in forms:
        checked(program.workflow().draw(form), form)
        drawn(program.workflow(), form)


def test_a_trace_of_another_agent_is_refused() -> None:
    other = Workflow("other").step("a", fn=lambda state: 1)
    trace = other.run("in", store=MemoryStore())
    with pytest.raises(WorkflowError, match="the trace is of 'other', not of workflow 'chosen'"):
        chosen().draw(run=trace)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(WorkflowError, match="drawn as mermaid or dot, not as 'png'"):
        chosen().draw("png")  # type: ignore[arg-type]
