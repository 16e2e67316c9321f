"""A variable of the context is never taken out of it: CPython 3.11 would remember what is not there any more."""

from __future__ import annotations

import contextvars
import subprocess
import sys

import pytest

from agentloom.runtime.contexts import put

NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("number", default=7)

COLLECTED = """
import contextvars, gc, random, sys
from agentloom.runtime import changes, left_out, redaction_rules, scope, work
from agentloom.runtime.profiles import Profile
others = [contextvars.ContextVar(str(number)) for number in range(12)]
for number, one in enumerate(others):
    one.set(number)
blocks = {
    "entered": (lambda: scope.entered(Thing()), scope.here),
    "doing": (lambda: work.doing(work.Work("x")), work.under_way),
    "left_out": (lambda: left_out.entered_left_out(left_out.LeftOut("x")), left_out._here.get),
    "use_profiles": (lambda: changes.use_profiles(), changes._in_use.get),
    "use_secrets": (lambda: redaction_rules.use_secrets(redaction_rules.secrets(patterns=["x{9}"])),
                    redaction_rules._in_use.get),
}
class Thing:
    pass
block, ask = blocks[sys.argv[1]]
gc.callbacks.append(lambda *_: ask())
draw = random.Random(1)
before = ask()
for _ in range(3000):
    gc.set_threshold(0)
    gc.collect(0)
    with block():
        kept = [[] for _ in range(draw.randrange(40))]
        gc.set_threshold(draw.randrange(1, 60), 10, 10)
    gc.set_threshold(0)
    assert ask() is before
print("held")
"""


def test_what_was_there_is_there_again() -> None:
    def inside() -> None:
        token = put(NUMBER, 8)
        assert NUMBER.get() == 8
        NUMBER.reset(token)
        assert NUMBER.get() == 7
        assert NUMBER in contextvars.copy_context()
        NUMBER.set(9)
        NUMBER.reset(put(NUMBER, 8))
        assert NUMBER.get() == 9

    contextvars.Context().run(inside)


@pytest.mark.parametrize("block", ["entered", "doing", "left_out", "use_profiles", "use_secrets"])
def test_a_collector_that_asks_in_the_middle_is_told_the_truth(block: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTED, block], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "held\n"), done.stderr[-2000:]
