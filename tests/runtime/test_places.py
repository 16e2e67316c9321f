"""Places in the code, relative to the agent's root."""

from __future__ import annotations

import json
from pathlib import Path
from types import CodeType

from agentloom.runtime.places import Places, place_of

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_relative_to_the_root_and_never_absolute() -> None:
    def probe() -> None: ...

    assert Places(str(ROOT)).name(probe.__code__) == "tests/runtime/test_places.py"
    assert Places(str(Path(__file__).parent)).name(probe.__code__) == "test_places.py"
    assert Places("/nowhere").name(probe.__code__) == "test_places.py"


def test_library_code_has_no_place() -> None:
    assert Places(str(ROOT)).name(json.dumps.__code__) is None


def test_packages_of_the_user_and_of_other_environments_are_libraries() -> None:
    for folder in ("/home/u/.local/lib/python3.11/site-packages", "/usr/lib/python3/dist-packages"):
        code = compile("0", f"{folder}/package/module.py", "exec")
        assert Places("/home/u").name(code) is None


def test_the_caller_is_the_innermost_frame_of_the_agents_own_code() -> None:
    places = Places(str(ROOT))
    lines: list[str] = []
    json.dumps(object(), default=lambda _: lines.append(places.caller()))
    assert lines[0].startswith("tests/runtime/test_places.py:")
    assert lines[0].endswith(" <lambda>")


def test_hidden_code_is_passed_over() -> None:
    places = Places(str(ROOT))

    def wrapper() -> str:
        return places.caller()

    assert wrapper().endswith(" wrapper")
    places.hide(wrapper.__code__)
    assert wrapper().endswith(" test_hidden_code_is_passed_over")


def test_definitions_have_places_too() -> None:
    def probe() -> None: ...

    code: CodeType = probe.__code__
    found = place_of(probe, Places(str(ROOT)))
    assert found == f"tests/runtime/test_places.py:{code.co_firstlineno} {probe.__qualname__}"
    assert place_of(len, Places(str(ROOT))) == "len"
