"""The story's folder, and its agent as an example: it survives malformed answers and really deletes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentloom.cli.demo_sampler import SeededSampler
from agentloom.cli.demo_story import EDIT, REQUEST, Story, source_folder
from agentloom.errors import TargetError
from agentloom.runtime.assembly import empty_answer
from agentloom.runtime.models import set_backend
from agentloom.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator


class Scripted(SeededSampler):
    """A model that gives these texts in turn, and keeps what it was asked."""

    def __init__(self, *texts: str) -> None:
        super().__init__(0)
        self.texts = list(texts)
        self.asked: list[dict[str, Any]] = []

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(dict(request))
        return {**empty_answer(), "content": self.texts[len(self.asked) - 1]}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story.make(tmp_path / "story")


@pytest.fixture
def script() -> Iterator[Any]:
    before = set_backend(None)

    def use(*texts: str) -> Scripted:
        model = Scripted(*texts)
        set_backend(model)
        return model

    yield use
    set_backend(before)


def call(target: str, filter_: str = "inactive > 90 days") -> str:
    return json.dumps({"target": target, "filter": filter_})


@pytest.mark.parametrize(("target", "gone"), [("staging", 12), ("production", 4031)])
def test_the_agent_does_what_the_model_chose(story: Story, script: Any, target: str, gone: int) -> None:
    model = script(call(target))
    with story.imported() as (agent, accounts):
        before = accounts.count()
        trace = agent.cleanup.run(REQUEST, store=MemoryStore())
        assert trace.output == f"deleted {gone:,} accounts in {target}"
        assert before[target] - accounts.count()[target] == gone
        other = "production" if target == "staging" else "staging"
        assert accounts.count()[other] == before[other]
    assert [c.kind for c in trace.calls] == ["retrieve", "model", "tool"]
    assert [c.effect for c in trace.calls if c.kind == "tool"] == ["write"]
    [asked] = model.asked
    assert asked["temperature"] == 0.7
    assert "Runbook 14" in asked["messages"][1]["content"]
    assert asked["messages"][1]["content"].endswith(REQUEST)


@pytest.mark.parametrize(
    "malformed",
    ['{"target": "staging", "fil', "[]", "7", '"staging"', "{}", '{"target": "staging", "filter": 5}',
     call("staging", "everything"), call("nowhere"), '{"target": ["staging"], "filter": "inactive > 90 days"}'],
)  # fmt: skip
def test_a_malformed_answer_is_asked_for_again(story: Story, script: Any, malformed: str) -> None:
    script(malformed, call("staging"))
    with story.imported() as (agent, _):
        trace = agent.cleanup.run(REQUEST, store=MemoryStore())
        assert trace.output == "deleted 12 accounts in staging"
        assert len(trace.calls) == 4
        assert trace.replay().verdict == "identical"


def test_three_malformed_answers_end_the_run_and_delete_nothing(story: Story, script: Any) -> None:
    script("no", "no", "no")
    before = story.digest()
    with story.imported() as (agent, _), pytest.raises(RuntimeError, match="no usable answer in 3 attempts"):
        agent.cleanup.run(REQUEST, store=MemoryStore())
    assert story.digest() == before


def test_the_folder_holds_the_files_of_the_example(story: Story) -> None:
    example = source_folder()
    for name in ("agent.py", "accounts.py", "runbooks/14-inactive-accounts.md"):
        assert (story.folder / name).read_bytes() == (example / name).read_bytes()


def test_a_sampler_is_written_into_the_agent(tmp_path: Path) -> None:
    story = Story.make(tmp_path / "s", model="sampler:seeded")
    assert 'MODEL = "sampler:seeded"' in story.agent_file.read_text("utf-8")


def test_the_edited_copy_differs_in_one_place(story: Story) -> None:
    edited = story.edited()
    old, new = story.agent_file.read_text("utf-8"), edited.agent_file.read_text("utf-8")
    assert old.replace(*EDIT) == new != old
    assert edited.digest() == story.digest()
    assert (edited.folder / "accounts.py").read_bytes() == (story.folder / "accounts.py").read_bytes()


def test_an_edit_that_no_longer_fits_is_an_error(story: Story) -> None:
    with pytest.raises(TargetError, match="0 times, not once"):
        story.replace("no such text", "")


def test_reset_brings_back_every_row(story: Story) -> None:
    fresh = story.digest()
    with story.imported() as (_, accounts):
        assert accounts.delete("production", 90) == 4031
        assert story.digest() != fresh
        story.reset()
        assert accounts.count() == {"staging": 40, "production": 12480}
    assert story.digest() == fresh


def test_importing_the_story_leaves_no_module_and_no_path(story: Story) -> None:
    path, marker = list(sys.path), object()
    sys.modules["agent"] = marker  # type: ignore[assignment]
    try:
        with story.imported() as (agent, _):
            assert Path(agent.__file__).parent == story.folder
        assert sys.modules["agent"] is marker
        assert "accounts" not in sys.modules
        assert sys.path == path
    finally:
        del sys.modules["agent"]


def test_an_existing_folder_is_never_filled(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be made"):
        Story.make(tmp_path)
