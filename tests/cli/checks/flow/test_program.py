"""Which functions run inside of a run."""

from __future__ import annotations

from agentloom.cli.checks.flow.program import Program
from tests.cli.checks.flow.agents import HEAD, source


def roles(text: str, *others: tuple[str, str], name: str | None = None, entry: int = 1) -> dict[str, str]:
    program = Program([source(text), *(source(one, f"{file}.py") for file, one in others)], entry, name)
    return {function.name: function.role for function in program.functions}


def test_of_an_agent_what_it_reaches() -> None:
    text = HEAD + "@agent\ndef run(x): return near(x)\ndef near(x): return x\ndef far(x): run.run(x)\n"
    assert roles(text) == {"search": "host", "run": "run", "near": "run", "far": "outside"}


def test_what_only_tools_call_is_host_work() -> None:
    text = (
        HEAD
        + "@tool\ndef save(x): deep(x); both(x)\ndef deep(x): pass\ndef both(x): pass\n"
        + "@agent\ndef run(x): both(x); save(x)\n"
    )
    assert roles(text) == {"search": "host", "save": "host", "deep": "host", "both": "run", "run": "run"}


def test_of_a_script_all_of_it() -> None:
    assert roles("def a(): pass\ndef b(): pass\na()") == {"a": "run", "b": "run"}
    assert roles("import lib\nlib.a()", ("lib", "def a(): pass\ndef b(): pass")) == {
        "a": "run",
        "b": "outside",
    }


def test_a_named_object_is_the_agent() -> None:
    assert roles("def a(): b()\ndef b(): pass\ndef c(): pass", name="a") == {
        "a": "run",
        "b": "run",
        "c": "outside",
    }


def test_methods_of_classes_that_are_in_hand() -> None:
    text = (
        HEAD
        + "@agent\ndef run(x): return A().go(x)\n"
        + "class A:\n    def go(self, x): pass\nclass B:\n    def go(self, x): pass\n"
    )
    assert roles(text) == {"search": "host", "run": "run", "A.go": "run", "B.go": "outside"}


def test_in_a_folder_only_programs_that_ask_models() -> None:
    assert roles("import openai\ndef a(): pass", ("other", "def b(): pass"), entry=2) == {
        "a": "run",
        "b": "outside",
    }


def test_a_file_without_an_agent_alone_in_a_folder_of_none() -> None:
    assert roles("def a(): pass", ("other", "def b(): pass"), entry=2) == {"a": "run", "b": "run"}


def test_objects_that_show_their_address() -> None:
    text = "class A: pass\nclass B(A): pass\nclass C(Unknown): pass\nclass D:\n    def __str__(self): return ''\n"
    text += "from dataclasses import dataclass\n@dataclass\nclass E: pass\nclass F(D): pass\n"
    program = Program([source(text)])
    assert [name for name in "ABCDEF" if program.shows_address(name, how="str")] == ["A", "B"]
    assert [name for name in "ABCDEF" if program.shows_address(name, how="repr")] == ["A", "B", "D", "F"]


def test_a_base_of_the_same_name_is_another_class() -> None:
    program = Program(
        [source("import dom\nclass Node(dom.Node): pass\nclass A(B): pass\nclass B(A): pass\n")]
    )
    assert not any(program.shows_address(name, how="str") for name in ("Node", "A", "B"))
