"""Model names in source: how they are found, with their places."""

from __future__ import annotations

import ast
import textwrap

import pytest

from agentloom.cli.checks.model_calls import named_models


def names(code: str) -> list[tuple[str, int, bool]]:
    return [(one.name, one.line, one.certain) for one in named_models(ast.parse(textwrap.dedent(code)))]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("await model('a', messages)", [("a", True)]),
        ("agentloom.model('a', [])", [("a", True)]),
        ("model(name, model='a')", [("a", True)]),
        ("graph.step('classify', model='a', temperature=0)", [("a", True)]),
        ("graph.step('classify', model=('a', 'b'))", [("a", True), ("b", True)]),
        ("client.chat.completions.create(model='a', messages=[])", [("a", True)]),
        ("client.responses.create(model='a')", [("a", True)]),
        ("client.messages.stream(model='a')", [("a", True)]),
        ("client.models.generate_content(model='a')", [("a", True)]),
        ("bedrock.client.converse(modelId='a')", [("a", True)]),
        ("litellm.completion('a', [])", [("a", False)]),
        ("Agent('a')", [("a", False)]),
        ("ChatOpenAI(model_name='a')", [("a", False)]),
        ("requests.post(url, json={'model': 'a', 'n': 1})", [("a", False)]),
        ("print('a')\nlog.info('a', extra={'key': 'b'})\nx = ['a']", []),
        ("model(f'gpt-{version}')\nmodel('')\nmodel(3)", []),
    ],
)
def test_where_names_are_given(code: str, found: list[tuple[str, bool]]) -> None:
    assert [(name, certain) for name, _, certain in names(code)] == found


@pytest.mark.parametrize(
    "code",
    [
        "M = 'a'\nmodel(M)",
        "M: str = 'a'\nmodel(M)",
        "class C:\n    m = 'a'\nmodel(C.m)",
        "class C:\n    def f(self):\n        self.m = 'a'\n        model(self.m)",
        "def f(m='a'):\n    model(m)",
        "def f(x, *, m='a'):\n    model(m)",
        "M = os.environ.get('MODEL', 'a')\nmodel(M)",
        "model(os.getenv('MODEL') or 'a')",
        "model(await env('MODEL', default='a'))",
        "model('a' if small else a_name())",
        "model(x := 'a')",
        "A = B\nB = 'a'\nmodel(A)",
    ],
)
def test_names_are_followed_to_where_they_are_written(code: str) -> None:
    assert [name for name, _, _ in names(code)] == ["a"]


def test_the_place_is_that_of_the_text() -> None:
    code = "M = 'a'\n\n\ndef f():\n    model(M)\n    other(model=M)\n"
    assert names(code) == [("a", 1, True)]


def test_names_that_go_in_circles_end() -> None:
    assert names("A = B\nB = A\nmodel(A)") == []
