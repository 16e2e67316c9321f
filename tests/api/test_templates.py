"""Templates: what they are filled with is recorded, and an error names template, line and variable."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import agentloom
from agentloom import Template, Trace, agent, render
from agentloom.api.templates import as_text
from agentloom.errors import NoActiveRun, NotSupported, TemplateError, ValueRefused
from agentloom.store import MemoryStore

LETTER = Template.file("prompts/letter.md")
FILLED = "Dear Ann,\nyour order 812 is {late}.\n"


@agent(name="writes")
async def writes(name: str) -> str:
    return render("prompts/letter.md", name=name, order=812)


@agent(name="writes")
def writes_sync(name: str) -> str:
    return render(LETTER, name=name, order=812)


def kept(trace: Trace) -> list[tuple[str, Any]]:
    return [
        (str(entry["name"]), trace.journal.tree(str(entry["val"])))
        for entry in trace.journal.entries
        if entry["kind"] == "state"
    ]


@pytest.mark.parametrize("which", [writes, writes_sync])
def test_template_source_and_variables_are_recorded(which: Any) -> None:
    trace = which.run("Ann", store=MemoryStore())
    assert trace.output == FILLED
    value = {
        "template": LETTER.text,
        "engine": "braces",
        "source": "prompts/letter.md",
        "variables": {"name": "Ann", "order": 812},
    }
    assert kept(trace) == [("template:letter", value)]
    assert trace.replay().verdict == "identical"


def test_a_changed_template_and_a_changed_variable_diverge() -> None:
    trace = writes.run("Ann", store=MemoryStore())

    @agent(name="writes")
    async def other_text(name: str) -> str:
        return render(Template("Hi {name}, {order}", name="letter"), name=name, order=812)

    @agent(name="writes")
    async def other_order(name: str) -> str:
        return render(LETTER, name=name, order=813)

    for changed, word in ((other_text, "Hi {name}"), (other_order, "813")):
        report = trace.replay(agent=changed, check=False)
        assert report.verdict == "diverged"
        assert word in str(report)


def test_the_text_is_made_from_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a run with another template, or with other variables, can be made of a trace."""
    from agentloom.runtime.engine import Engine

    plain = Engine.state

    def overridden(self: Engine, scope: Any, name: str, value: Any, *args: Any, **more: Any) -> object:
        if name == "template:letter":
            value = {**value, "template": "{name}: {order}!", "variables": {"name": "Bob", "order": 1}}
        return plain(self, scope, name, value, *args, **more)

    monkeypatch.setattr(Engine, "state", overridden)
    assert writes.run("Ann", store=MemoryStore()).output == "Bob: 1!"


def test_variables_are_data_and_braces_in_them_stay() -> None:
    assert Template("{a} {b}").fill({"a": "{b} {0.__class__}", "b": "}}{{"}) == "{b} {0.__class__} }}{{"


@pytest.mark.parametrize(
    ("text", "line", "near"),
    [
        ("a\n{order.total}", 2, "{order.total}"),
        ("{0}", 1, "{0}"),
        ("{}", 1, "{}"),
        ('x\ny\n{"team": "billing"}', 3, '{"team"'),
        ("{name!r}", 1, "{name!r}"),
        ("{name:>10}", 1, "{name:>10}"),
        ("one { brace", 1, "{ brace"),
        ("one } brace", 1, "} brace"),
        ("{open", 1, "{open"),
    ],
)
def test_what_is_no_variable_is_refused_with_its_line(text: str, line: int, near: str) -> None:
    with pytest.raises(TemplateError) as caught:
        Template(text, name="reply")
    assert caught.value.line == line
    assert near in str(caught.value)
    assert f"template 'reply', line {line}" in str(caught.value)
    assert "write {{ and }} for braces" in str(caught.value)


def test_missing_and_unknown_variables_are_named() -> None:
    with pytest.raises(
        TemplateError, match=r"'letter', line 2: \{order\} was not given; there are name"
    ) as caught:
        LETTER.fill({"name": "Ann"})
    assert (caught.value.template, caught.value.line, caught.value.variable) == ("letter", 2, "order")
    with pytest.raises(TemplateError, match=r"'letter' has no variable 'ordr'; it has name, order"):
        LETTER.fill({"name": "Ann", "order": 1, "ordr": 2})
    with pytest.raises(TemplateError, match=r"line 2: variable 'order': a set has no order; sorted"):
        LETTER.fill({"name": "Ann", "order": {1}})


def test_nothing_is_recorded_of_a_rendering_that_fails() -> None:
    @agent
    def fails() -> None:
        with pytest.raises(TemplateError):
            render(LETTER, name="Ann")
        with pytest.raises(ValueRefused):
            render(LETTER, name="Ann", order=object())

    assert kept(fails.run(store=MemoryStore())) == []


def test_files_are_found_beside_the_code_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "hello.txt").write_bytes("h\u00e9llo {name}\r\n".encode())
    (tmp_path / "code.py").write_text(
        "from agentloom import Template\nHELLO = Template.file('prompts/hello.txt')\n"
    )
    names: dict[str, Any] = {}
    code = compile((tmp_path / "code.py").read_text(), str(tmp_path / "code.py"), "exec")
    exec(code, names)
    assert names["HELLO"].fill({"name": "Ann"}) == "h\u00e9llo Ann\n"
    assert (names["HELLO"].name, names["HELLO"].source) == ("hello", "prompts/hello.txt")


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), (b"\xff\xfe", "it is not UTF-8")])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "broken.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TemplateError, match=why):
        Template.file(path)


def test_outside_a_run_nothing_is_rendered() -> None:
    with pytest.raises(NoActiveRun):
        render(LETTER, name="Ann", order=1)


# -- Jinja2 ------------------------------------------------------------------------------------------------------------


def test_a_template_of_jinja() -> None:
    @agent
    async def lists() -> str:
        return render("prompts/list.md.j2", name="Ann", items=[{"name": "ink"}, {"name": "pen"}])

    trace = lists.run(store=MemoryStore())
    assert trace.output == "Dear Ann,\n- ink\n- pen\n\n"
    assert kept(trace)[0][1]["engine"] == "jinja2"
    assert trace.replay().verdict == "identical"
    assert Template.file("prompts/list.md.j2").fields == (("name", 1), ("items", 2), ("note", 3))


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("a\n{{ order }}", {}, r"'t', line 2: \{\{ order \}\} was not given; there are none"),
        ("a\n{{ order.total }}", {"order": {}}, r"'t', line 2: UndefinedError"),
        ("a\nb\n{% if %}", {}, r"'t', line 3: "),
        ("{{ items | random }}", {"items": [1]}, r"'t', line 1: No filter named 'random'"),
        ("{{ lipsum() }}", {}, r"'lipsum|lipsum"),
        ("{{ x.__class__.__mro__ }}", {"x": 1}, r"'t', line 1: SecurityError"),
        (
            "{% for x in xs %}{{ x }}{% endfor %}",
            {"xs": [{"a"}]},
            r"variable 'xs' holds a set, which has no order",
        ),
        ("{{ 1 / n }}", {"n": 0}, r"'t', line 1: ZeroDivisionError"),
        ("{{ a }}", {"a": 1, "b": 2}, r"has no variable 'b'; it has a"),
    ],
)
def test_what_is_wrong_with_a_template_of_jinja(text: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        Template(text, name="t", engine="jinja2").fill(given)


@pytest.mark.parametrize(
    "text", ["{% include 'other' %}", "{% extends 'other' %}", "{% import 'other' as o %}"]
)
def test_other_templates_are_not_taken_in_unrecorded(text: str) -> None:
    with pytest.raises(NotSupported, match="takes in another template"):
        Template(text, engine="jinja2").fill({})


def test_an_unknown_engine() -> None:
    with pytest.raises(ValueError, match="it is 'braces' or 'jinja2'"):
        Template("x", engine="mustache")  # type: ignore[arg-type]


# -- values ------------------------------------------------------------------------------------------------------------


class Team(enum.Enum):
    BILLING = "billing"


class Item(BaseModel):
    name: str
    price: Decimal


@dataclasses.dataclass
class Point:
    x: int
    team: Team


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (7, "7"),
        (True, "true"),
        (None, "null"),
        ({"a": [1, "\u00e9"]}, '{"a": [1, "\u00e9"]}'),
        (Team.BILLING, "billing"),
        ([Team.BILLING], '["billing"]'),
        (Point(1, Team.BILLING), '{"x": 1, "team": "billing"}'),
        (Item(name="ink", price=Decimal("1.10")), '{"name": "ink", "price": "1.10"}'),
        (dt.date(2026, 2, 3), "2026-02-03"),
        (dt.datetime(2026, 2, 3, tzinfo=dt.UTC), "2026-02-03T00:00:00+00:00"),
        (Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1: (2, 3)}, '{"1": [2, 3]}'),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize("value", [{1, 2}, object(), b"x", float("nan"), [frozenset({1})], {(1, 2): 3}, len])
def test_values_without_one_text(value: object) -> None:
    with pytest.raises(TypeError):
        as_text(value)


@given(st.dictionaries(st.from_regex(r"\A[a-z_]{1,5}\Z"), st.text(), max_size=4), st.text())
def test_a_text_with_escaped_braces_comes_back(variables: dict[str, str], around: str) -> None:
    escaped = re.sub(r"[{}]", lambda match: match.group() * 2, around)
    text = escaped.join(["", *(f"{{{name}}}" for name in variables), ""])
    filled = Template(text).fill(variables)
    assert filled == around.join(["", *variables.values(), ""])


@given(st.text(alphabet="{}ab \n", max_size=12))
def test_any_text_is_a_template_or_is_refused(text: str) -> None:
    try:
        template = Template(text)
    except TemplateError:
        return
    given_values = {name: "v" for name, _ in template.fields}
    assert "{" not in text or template.fill(given_values) is not None


def test_registered_values_keep_their_types() -> None:
    agentloom.register(Point)

    @agent
    def points() -> str:
        return render(Template("at {point}"), point=Point(1, Team.BILLING))

    agentloom.register(Team)
    trace = points.run(store=MemoryStore())
    assert trace.output == 'at {"x": 1, "team": "billing"}'
    assert trace.replay().verdict == "identical"
