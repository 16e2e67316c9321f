"""The refund that was asked for in the evening: the code was changed and deployed in the night, and somebody said yes
in the morning. Exactly one refund, or a clear refusal."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentloom import Trace, inbox
from tests.cli.scripts import Done, Scripts

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "people" / "refund.py"
PEOPLE = '[roles]\nfinance = ["ann"]\n'


class Shop(Scripts):
    """The example with its store, in a folder of its own."""

    @property
    def program(self) -> Path:
        return self.folder / "refund.py"

    def deploy(self, *edits: tuple[str, str]) -> None:
        text = EXAMPLE.read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new)
        self.program.write_text(text, encoding="utf-8")

    def loom(self, *args: str, code: int = 0) -> Done:
        done = self.call(*args)
        assert done.code == code, done.all
        return done

    def refunds(self) -> list[tuple[int, float, str]]:
        with closing(sqlite3.connect(self.folder / "shop.sqlite")) as db:
            return db.execute("select * from refunds").fetchall()

    def trace(self) -> Trace:
        return Trace.open("last", str(self.store))


@pytest.fixture
def evening(tmp_path: Path) -> Shop:
    """Asked, and everybody went home."""
    shop = Shop(tmp_path)
    shop.deploy()
    asked = shop.loom("run", f"{shop.program}:desk", "--", "812", code=75)
    assert "Approve refund(order=812, amount=40.0" in asked.all
    (shop.store / "people.toml").write_text(PEOPLE)
    assert shop.refunds() == []
    return shop


MOVED = (
    ("def wants_reason(order: dict[str, Any]) -> bool:", "def must_say_why(order: dict[str, Any]) -> bool:"),
    ("if wants_reason(found):", "# the customer's word\n    if must_say_why(found):"),
    ('    """Give money back."""', '    """Give money back to the card that was charged."""'),
    ("HOURS = 3600.0", "# Seconds.\nHOURS = 60 * 60.0"),
)


def test_a_deploy_that_changes_nothing_that_matters(evening: Shop) -> None:
    evening.deploy(*MOVED)
    assert "go on" in evening.loom("check-deploy", f"{evening.program}:desk").all
    (ask,) = inbox(str(evening.store))
    evening.loom("answer", "last", "yes", "--by", "ann")
    done = evening.loom("resume", "last")
    assert "refunded order 812: $40.00 (approved by ann)" in done.out
    assert evening.refunds() == [(812, 40.0, "lost on the way")]

    second = evening.loom("answer", "last", "yes", "--by", "ann", code=1)
    assert "has ended" in second.err
    evening.loom("resume", "last", code=1)
    evening.loom("work", "--once")
    assert evening.refunds() == [(812, 40.0, "lost on the way")]

    trace = evening.trace()
    who_saw_what_when(trace, ask.asked_at)
    evening.loom("replay", "last")
    assert evening.refunds() == [(812, 40.0, "lost on the way")]


def who_saw_what_when(trace: Trace, asked_at: int) -> None:
    entries = trace.journal.entries
    suspend = next(entry for entry in entries if entry["kind"] == "suspend")
    said = next(entry for entry in entries if entry["kind"] == "answer")
    assert suspend["at"] == asked_at
    shown = trace.journal.tree(suspend["val"])
    assert isinstance(shown, dict)
    assert shown["evidence"] == {"order": 812, "total": 40.0, "shipped": "lost"}
    assert shown["approval"]["args"] == {"order": 812, "amount": 40.0, "why": "lost on the way"}  # type: ignore[index, call-overload]
    who = trace.journal.tree(said["who"])
    assert isinstance(who, dict)
    assert (who["name"], who["via"]) == ("ann", "cli")
    assert isinstance(who["at"], int)
    assert suspend["at"] < who["at"] < said["at"]
    assert trace.notes[0]["approved"]["by"] == "ann"
    assert trace.verify().complete


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        pytest.param(
            ('order, found["total"], why,\n', 'order, found["total"] * 2, why,\n'),
            "amount", id="amount",
        ),
        pytest.param(
            ("amount: float, why: str) -> str", "amount: str, why: str) -> str"),
            "schema", id="types", marks=pytest.mark.slow,
        ),
        pytest.param(
            ('order["shipped"] != "lost"', 'order["shipped"] != "gone"'),
            "Why is order", id="branch", marks=pytest.mark.slow,
        ),
        pytest.param(
            ("found = look_up(order)", "found = look_up(order + 1)"),
            "args.order", id="earlier", marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_a_deploy_that_asks_for_something_else_is_told_before_and_refused(
    evening: Shop, edit: tuple[str, str], said: str
) -> None:
    evening.loom("answer", "last", "yes", "--by", "ann")
    head = evening.trace().head
    evening.deploy(edit)
    evening.loom("check-deploy", f"{evening.program}:desk", code=3)
    done = evening.loom("resume", "last", code=3)
    assert "DIVERGED" in done.all
    assert said in done.all
    assert evening.refunds() == []
    assert evening.trace().head == head

    evening.deploy()  # taken back: the answer of the morning still stands
    evening.loom("resume", "last")
    assert evening.refunds() == [(812, 40.0, "lost on the way")]


def test_a_deploy_that_pays_something_else_after_the_yes_is_refused(evening: Shop) -> None:
    evening.loom("answer", "last", "yes", "--by", "ann")
    evening.deploy(
        ("grant(refund, order, found['total'], why)", "grant(refund, order, 2 * found['total'], why)")
    )
    done = evening.loom("resume", "last", code=1)
    assert "is for other arguments: amount is not what was approved" in done.all
    assert evening.refunds() == []


def test_a_no_makes_none(evening: Shop) -> None:
    evening.loom("answer", "last", "no", "--by", "ann")
    assert "not refunded: denied" in evening.loom("resume", "last").out
    assert evening.refunds() == []


def test_two_questions_one_after_the_other(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.deploy()
    shop.loom("run", f"{shop.program}:desk", "--", "813", code=75)
    (shop.store / "people.toml").write_text(PEOPLE)
    shop.loom("answer", "last", "too small")
    shop.loom("work", "--once")
    assert [ask.question for ask in inbox(str(shop.store))] == [
        "Approve refund(order=813, amount=900.0, why='too small')?"
    ]
    shop.loom("answer", "last", "yes", "--by", "ann")
    shop.loom("work", "--once")
    assert shop.refunds() == [(813, 900.0, "too small")]
