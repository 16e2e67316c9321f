"""Case 12, as far as replay goes: a redeploy that moves a helper and edits comments replays; one that changes a
branch or a recorded configuration stops before any effect and names the call. Where the code lies does not matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.conftest import Scenario

AGENT = '''
from agentloom import agent, tool
from settings import LIMIT

@tool
def charge(amount):
    open("charged.txt", "a").write(f"{amount}\\\\n")
    return amount

@tool(effect="read")
def price(order):
    return 40

def decide(total):
    """Whether to pay."""
    # a comment
    return total < LIMIT

@agent
def main(order):
    total = price(order)
    if decide(total):
        return charge(total)
    return "refused"
'''


def _recorded(scenario: Scenario) -> Path:
    path = scenario.folder / "agent.py"
    path.write_text(AGENT)
    (scenario.folder / "settings.py").write_text("LIMIT = 100\n")
    done = scenario.call("run", f"{path}:main", "--", "812")
    assert done.code == 0, done.all
    (scenario.folder / "charged.txt").unlink()
    return path


def test_a_moved_helper_and_edited_comments_replay(scenario: Scenario) -> None:
    path = _recorded(scenario)
    helper = AGENT[AGENT.index("def decide") : AGENT.index("@agent")]
    (scenario.folder / "helpers.py").write_text("from settings import LIMIT\n\n\n# moved here\n" + helper)
    path.write_text(
        AGENT.replace(helper, "").replace(
            "from settings import LIMIT", "# new comment\n\nfrom helpers import decide"
        )
    )
    scenario.identical()
    assert not (scenario.folder / "charged.txt").exists()


@pytest.mark.parametrize(
    ("edit", "cls", "index", "names"),
    [
        (("return total < LIMIT", "return total > LIMIT"), "ended early", 2, "decide()"),
        (("LIMIT = 100", "LIMIT = 10"), "ended early", 2, "LIMIT"),
        (("return charge(total)", "return charge(total + 1)"), "changed", 2, "main()"),
        (("total = price(order)", "total = charge(1)"), "extra", 1, "main()"),
        (("total = price(order)", "total = 40"), "missing", 1, "main()"),
    ],
    ids=["a branch", "a configuration", "an argument", "another tool", "a call less"],
)
def test_a_changed_branch_or_configuration_stops_before_any_effect(
    scenario: Scenario, edit: tuple[str, str], cls: str, index: int, names: str
) -> None:
    _recorded(scenario)
    for name in ("agent.py", "settings.py"):
        file = scenario.folder / name
        file.write_text(file.read_text().replace(*edit))
    text, data = scenario.diverged()
    assert data["class"] == cls
    assert (data["call"]["index"] or 1) == index
    assert data["cause"]["kind"] == "code"
    assert f"code changed: {names}" in text or names in [
        change["name"] for change in data["cause"]["changes"]
    ], text
    assert not (scenario.folder / "charged.txt").exists()


def test_an_agent_of_a_package_replays_from_any_folder(scenario: Scenario, tmp_path: Path) -> None:
    package = scenario.folder / "app" / "bots"
    package.mkdir(parents=True)
    (scenario.folder / "app" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "conf.py").write_text("FACTOR = 3\n")
    (package / "one.py").write_text(
        "from agentloom import agent, tool\nfrom .conf import FACTOR\nfrom app.bots import conf\n"
        "@tool(effect='read')\ndef get(n): return n * conf.FACTOR\n@agent\ndef main(): return get(2) * FACTOR\n"
    )
    done = scenario.call("run", "app.bots.one:main")
    assert done.out == "18\n", done.all
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in (scenario.folder, package, elsewhere):
        again = scenario.replay(cwd=folder)
        assert again.code == 0, again.all
    assert scenario.replay("--at", "recorded", cwd=elsewhere).code == 0
    (package / "conf.py").write_text("FACTOR = 4\n")
    text, data = scenario.diverged()
    assert (data["class"], data["cause"]["changes"][0]["name"]) == ("output", "FACTOR")
    assert "app/bots/conf.py:1" in text
