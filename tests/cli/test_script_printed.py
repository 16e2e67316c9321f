"""What tools print while other code of the script goes on comes back where it came."""

from __future__ import annotations

from tests.cli.scripts import Scripts
from tests.cli.test_script_objects import offering, same
from tests.cli.test_script_openai import asking, record

THREADS = """
import threading
steps = {name: threading.Event() for name in ("first", "second")}
def slow(n):
    print("slow begins", n)
    steps["first"].set()
    steps["second"].wait(10)
    print("slow ends", n, file=sys.stderr)
    print("slow ends", n)
    if n == 2:
        raise LookupError("slow")
    return [n]
def quick(step, then):
    steps[step].wait(10)
    print("quick", step)
    if then:
        steps[then].set()
    return step
"""
RUN = """
def work(n):
    try:
        print("got", slow(n))
    except LookupError as error:
        print("raised", error)
for n in (1, 2):
    for step in steps.values():
        step.clear()
    thread = threading.Thread(target=work, args=(n,))
    thread.start()
    quick("first", None)
    print("between")
    quick("first", "second")
    thread.join()
    print("after", n)
"""
TASKS = """
import asyncio
async def slow(n):
    print("slow begins", n)
    await asyncio.sleep(0.02)
    print("slow ends", n)
    return n
def quick(n):
    print("quick", n)
"""
TASKS_RUN = """
async def ticks():
    for n in range(4):
        quick(n)
        print("tick", n)
        await asyncio.sleep(0.008)
async def left():
    try:
        async with asyncio.timeout(0.01):
            await slow(9)
    except TimeoutError:
        print("left alone")
async def main():
    await asyncio.gather(slow(1), ticks(), left())
asyncio.run(main())
"""


def test_of_tools_in_threads(scripts: Scripts) -> None:
    done = same(scripts, offering(THREADS, ("slow", "quick"), RUN))
    order = [line.split()[0] for line in done.out.splitlines()[:7]]
    assert order == ["slow", "quick", "between", "quick", "slow", "got", "after"]
    output = scripts.recording().output()
    assert isinstance(output, dict)
    assert output["stdout"] == done.out


def test_of_tools_in_tasks(scripts: Scripts) -> None:
    path = scripts.write(offering(TASKS, ("slow", "quick"), TASKS_RUN))
    done = record(scripts, path, asking())
    assert "slow begins 1" in done.out
    again = scripts.replay()
    assert again.code == 0, again.all
    # What a tool printed that the script did not wait for is no part of its output.
    kept = [line for line in done.out.splitlines() if line != "slow begins 9"]
    assert again.out.splitlines()[: len(kept)] == kept
