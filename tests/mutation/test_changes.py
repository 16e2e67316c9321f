"""What a mutant changes is found, named without numbers, and filtered by rules that can be read."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import agentloom
from tests.mutation import accepted
from tests.mutation.changes import difference, mutants_of, rule_of

FILE = """
class Box:
    def xǁBoxǁput__mutmut_orig(self, item):
        if item is None:
            raise ValueError("no item")
        return item + 1
    def xǁBoxǁput__mutmut_1(self, item):
        if item is None:
            raise ValueError("XXno itemXX")
        return item + 1
    def xǁBoxǁput__mutmut_2(self, item):
        if item is None:
            raise ValueError("no item")
        return item + 2

def x__inner__mutmut_orig(): return 1
def x__inner__mutmut_1(): return 2
"""


def test_mutants_are_read_with_what_they_change() -> None:
    inner, one, two = mutants_of(FILE, "format.box")
    assert (one.name, two.name) == (
        "agentloom.format.box.xǁBoxǁput__mutmut_1",
        "agentloom.format.box.xǁBoxǁput__mutmut_2",
    )
    assert (two.function, inner.function) == ("format.box.Box.put", "format.box._inner")
    assert (one.rule, two.rule, inner.rule) == ("text", None, None)
    assert two.change == "- return item + 1\n+ return item + 2"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("f('two words')", "f(None)", None),
        ("f('two words')", "f('XXtwo wordsXX')", "text"),
        ("f('key')", "f('XXkeyXX')", None),
        ("f('two words')", "f()", None),
        ("f(f'of {len(x)} items')", "f(f'of {len(y)} items')", None),
        ("f(f'{x}.{y}')", "f(f'{x}.{x}')", None),
        ("cast('int', x)", "cast(None, x)", "cast"),
        ("cast('int', x)", "cast('int', None)", None),
        ("x.encode('utf-8')", "x.encode('UTF-8')", "codec"),
        ("x.decode('utf-8')", "x.decode()", "codec"),
        ("x.decode('ascii')", "x.decode()", None),
        ("x.decode('ascii')", "x.decode('ASCII')", "codec"),
        ("x.decode('ascii', 'replace')", "x.decode('ascii', 'REPLACE')", None),
        ("typing.cast('int', x)", "typing.cast('INT', x)", "cast"),
        ("zip(a, b, strict=True)", "zip(a, b, strict=False)", "strict"),
        ("zip(a, b, strict=True)", "zip(a, b)", "strict"),
        ("zip(a, b, strict=True)", "zip(a, strict=True)", None),
        ("a and b", "a or b", None),
    ],
)
def test_rules(old: str, new: str, rule: str | None) -> None:
    assert rule_of(*difference(ast.parse(old), ast.parse(new))) == rule


def test_every_accepted_survivor_has_a_reason() -> None:
    assert accepted.read(accepted.FILE.read_text(encoding="utf-8"))
    entry = '[[accepted]]\nfunction = "a.b"\nreason = "{}"\nchanges = [{}]\n'
    assert accepted.read(entry.format("says nothing new", "'x'")) == {("a.b", "x"): "says nothing new"}
    with pytest.raises(ValueError, match="write a reason"):
        accepted.read(entry.format("", "'x'"))
    with pytest.raises(ValueError, match="accepted twice"):
        accepted.read(entry.format("says nothing new", "'x', 'x'"))


def test_a_kind_of_change_is_accepted_by_a_pattern() -> None:
    inner, one, two = mutants_of(FILE, "format.box")
    entry = '[[accepted]]\nfunction = "{}"\nreason = "says nothing new"\npattern = {}\n'
    assert accepted.left([inner, one, two], "") == [inner, one, two]
    assert accepted.left([inner, one, two], entry.format("format.box.Box.*", "'.*return item.*'")) == [
        inner,
        one,
    ]
    assert accepted.left([inner, two], entry.format("format.*", "'- return 1'")) == [inner, two]
    assert accepted.left([inner], entry.format("format.*", "'- return 1\\n\\+ return 2'")) == []
    with pytest.raises(ValueError, match="write a reason"):
        accepted.kinds(entry.format("a", "'x'").replace("says nothing new", "x"))


def test_what_is_accepted_is_about_code_that_is_there() -> None:
    """Who changes such code looks again whether the reason still holds, and takes the entry out or writes it anew."""
    text = accepted.FILE.read_text(encoding="utf-8")
    assert accepted.gone(text, Path(agentloom.__file__).parent) == []


def test_what_is_accepted_of_code_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "format").mkdir()
    code = "class Box:\n    def put(self, item):\n        return (item +\n            1)\n"
    (tmp_path / "format" / "box.py").write_text(code, encoding="utf-8")
    entry = '[[accepted]]\nfunction = "{}"\nreason = "says nothing new"\n{}\n'
    there = entry.format("format.box.Box.put", '"changes" = ["- return item + 1\\n+ return item + 2"]')
    kind = entry.format("format.box.Box.*", "pattern = 'x'")
    assert accepted.gone(there + kind, tmp_path) == []
    for text, named in (
        (there.replace("return item + 1", "return item - 1"), "format.box.Box.put: - return item - 1"),
        (there.replace("Box.put", "Box.take"), "format.box.Box.take: - return item + 1"),
        (there.replace("format.box", "format.boxes"), "format.boxes.Box.put: - return item + 1"),
        (kind.replace("Box", "Crate"), "format.box.Crate.*: x"),
    ):
        (found,) = accepted.gone(text, tmp_path)
        assert found.startswith(named)


def test_what_is_accepted_and_found_by_a_test_is_named() -> None:
    mutants = list(mutants_of(FILE, "format.box"))
    inner, _, two = mutants
    entry = '[[accepted]]\nfunction = "{}"\nreason = "says nothing new"\n{}\n'
    text = entry.format(two.function, f"changes = [{json.dumps(two.change)}]")
    text += entry.format("format.box._*", "pattern = '- return 1.*'")
    text += entry.format("format.other", "pattern = '.*'")
    assert accepted.unused(mutants, [inner, two], text) == []
    assert accepted.unused(mutants, [inner], text) == [f"{two.function}: {two.change}"]
    assert accepted.unused(mutants, [two], text) == ["format.box._*: - return 1.*"]
    assert accepted.unused([inner], [], text) == ["format.box._*: - return 1.*"]
