"""Scripts with tools do under agentloom what they do without it, and a replay in another process, with another
hash seed outside, does it again: the same stdout, stderr and exit status all three times."""

from __future__ import annotations

import re

import pytest

from agentloom.testing.fake_provider import FakeProvider
from tests.cli.scripts import Done, Scripts
from tests.cli.test_script_objects import bare, offering
from tests.cli.test_script_openai import asking, record

NAMES = ("change", "fail", "afail", "draw", "seed", "achange")


def as_bare(scripts: Scripts, text: str, code: int = 0) -> Done:
    """Run a script by itself, record it, and replay it. The recorded run."""
    path = scripts.write(text)
    alone = bare(scripts, path)
    assert alone.code == code, alone.all
    done = record(scripts, path, asking())
    assert done.out == alone.out, done.all
    assert done.err.startswith(alone.err), done.all
    assert done.code == code, done.all
    again = scripts.replay(env={"PYTHONHASHSEED": "77"})
    assert again.code == 0, again.all
    assert again.out.startswith(alone.out + "-- IDENTICAL"), again.all
    assert again.err == alone.err, again.all
    return done


CASES_TEXT = """
variables of the environment
import os, threading
os.environ["GONE"] = "x"
def change(n):
    os.environ["SET"] = str(n)
    del os.environ["GONE"]
    thread = threading.Thread(target=os.environ.__setitem__, args=("OF_THREAD", "t"))
    thread.start()
    thread.join()
    return os.environ["SET"]
# then
print(change(3), os.environ["SET"], os.environ.get("GONE"), os.getenv("OF_THREAD"))
print("SET" in os.environ, "GONE" in [*os.environ])
# --
random numbers
import random, threading
OWN = random.Random(5)
def seed(n):
    random.seed(n)
    return random.random()
def draw():
    return [random.random(), OWN.random(), random.gauss(0, 1)]
# then
random.seed(1)
print(draw(), random.random(), OWN.random(), random.gauss(0, 1))
print(seed(7), random.random(), draw(), random.randint(1, 100), OWN.gauss(0, 1))
thread = threading.Thread(target=lambda: print(random.random()))
thread.start()
thread.join()
print(random.random(), random.sample(range(100), 3))
# --
random numbers of tasks
import asyncio, random
async def achange(n):
    await asyncio.sleep(0)
    return random.random()
# then
async def main():
    random.seed(3)
    print(await achange(1), random.random())
    print(await asyncio.create_task(achange(2)), random.random())
asyncio.run(main())
# --
context variables
import asyncio, contextvars
ONE = contextvars.ContextVar("ONE", default=0)
TWO = contextvars.ContextVar("TWO")
TOKENS = []
def change(n):
    ONE.set(n)
    TWO.set({"n": n})
    return n
def draw():
    ONE.reset(TOKENS.pop())
async def achange(n):
    ONE.set(n)
    await asyncio.sleep(0)
    TWO.get()["n"] = n
# then
print(ONE.get(), change(5), ONE.get(), TWO.get())
TOKENS.append(ONE.set(9))
draw()
print(ONE.get())
async def main():
    await achange(7)
    print(ONE.get(), TWO.get())
    change(8)
    print(ONE.get(), TWO.get())
asyncio.run(main())
print(ONE.get(), TWO.get())
# --
the context of decimal
import decimal
def change(n):
    decimal.getcontext().prec = n
    decimal.getcontext().traps[decimal.Inexact] = False
    return str(decimal.Decimal(1) / 3)
def draw():
    decimal.setcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP))
# then
print(change(5), decimal.Decimal(1) / 7)
draw()
print(decimal.Decimal(2) / 3, decimal.getcontext())
# --
where an exception comes from
import traceback
class Bad(Exception): pass
def deep(n):
    if n == 0: raise Bad("deep")
    deep(n - 1)
def fail(n):
    try:
        deep(n)
    except Bad:
        raise ValueError(n)
def draw(n):
    try:
        [][n]
    except IndexError as error:
        raise Bad("caused") from error
def change(n):
    raise KeyError(n) from None
# then
def show(function, n):
    try:
        function(n)
    except Exception as error:
        print(traceback.format_exc())
        chain = error
        while chain is not None:
            print(repr(chain), repr(chain.__cause__), chain.__suppress_context__)
            chain = chain.__context__
for function in (fail, draw, change):
    show(function, 4)
    try:
        1 / 0
    except ZeroDivisionError:
        show(function, 1)
# --
where an exception of an awaited tool comes from
import asyncio, traceback
async def afail(n):
    await asyncio.sleep(0)
    try:
        {}[n]
    except KeyError:
        raise ValueError(n)
# then
async def main():
    try:
        1 / 0
    except ZeroDivisionError:
        try:
            await afail(3)
        except ValueError:
            print(traceback.format_exc())
asyncio.run(main())
# --
names that Python suggests
import json, traceback
class Shape: colour = 1
def fail(n):
    value = 1
    if n == 0: return valeu
    if n == 1: return Shape().color
    return json.dumsp
# then
for n in range(3):
    try:
        fail(n)
    except (NameError, AttributeError):
        print(traceback.format_exc())
# --
a group of exceptions
import traceback
def fail(n):
    found = []
    for one in range(n):
        try:
            int("x" * one)
        except ValueError as error:
            found.append(error)
    raise ExceptionGroup("many", found)
# then
try:
    fail(2)
except* ValueError as group:
    print(traceback.format_exc())
# --
what an exception holds
class Bad(Exception):
    def __init__(self, order, text):
        super().__init__(order, text)
        self.order = order
def fail(order):
    order["tries"] = 1
    raise Bad(order, "x")
# then
order = {}
try:
    fail(order)
except Bad as error:
    print(error.args[0] is order, error.order is order, error.args)
    error.order["k"] = 2
print(order)
# --
an exception that is raised again
import traceback
ONE = KeyError("one")
def fail(n):
    ONE.add_note(f"note {n}")
    raise ONE
# then
for n in range(2):
    try:
        fail(n)
    except KeyError as error:
        print(error.__notes__, len(traceback.format_exc()) > 10)
# --
wrong arguments
import traceback
def change(n):
    return n
# then
try:
    change()
except TypeError:
    print(traceback.format_exc())
# --
a tool that ends the script
import sys
def fail(n):
    print("ending", n)
    if n: sys.exit(n)
    raise KeyboardInterrupt("me")
# then
for n in (3, 0):
    try:
        fail(n)
    except (SystemExit, KeyboardInterrupt) as error:
        print(repr(error))
# --
tools in tools, and tools that call themselves
def draw(n):
    if n > 300: raise ValueError("far")
    print("drawing", n)
    return {"n": n}
def change(n):
    try:
        one = draw(n)
    except ValueError as error:
        raise RuntimeError("outer") from error
    return [one, draw(0)]
def seed(n):
    return 0 if n == 0 else 1 + seed(n - 1)
# then
print(change(1), seed(300))
try:
    change(301)
except RuntimeError as error:
    print(repr(error), repr(error.__cause__))
# --
objects of the library
import argparse, array, collections, enum, io, itertools, queue, threading, types
WORDS, ORDERS, TEXT, BYTES = array.array("i", [1, 2]), queue.Queue(), io.StringIO(), io.BytesIO(b"abc")
PLACE, GIVEN, OWN = types.SimpleNamespace(a=1), argparse.Namespace(v=0), threading.local()
LIST, COUNT, NUMBERED, RANGE = iter([1, 2, 3, 4]), itertools.count(5), enumerate("abcdef"), iter(range(9))
READY, USER = threading.Event(), collections.UserDict(a=1)
def change(n):
    WORDS.append(n)
    WORDS[0] = 9
    ORDERS.put({"n": n})
    TEXT.write("hello")
    BYTES.seek(2)
    BYTES.write(b"xyz")
    PLACE.b, GIVEN.v, OWN.n, USER["b"] = [n], n, n, n
    READY.set()
    next(COUNT), next(NUMBERED), next(RANGE), next(LIST)
    return next(LIST)
# then
print(change(5), WORDS, ORDERS.qsize(), ORDERS.get(), TEXT.getvalue(), BYTES.getvalue(), BYTES.tell())
print(PLACE, GIVEN, OWN.n, USER, READY.is_set(), next(LIST), next(COUNT), next(NUMBERED), next(RANGE))
# --
caches of functions
import functools
def made():
    base = 10
    @functools.lru_cache
    def rate(n, *more, k=1):
        print("rating", n, more, k)
        return [n + base, more, k]
    return rate
rate = made()
@functools.cache
def plain(n, k=1):
    print("plain", n, k)
    return {"n": n}
@functools.lru_cache(maxsize=2, typed=True)
def typed(n, k=0, *, z=0):
    print("typed", n, k, z)
    return n
def change(n):
    rate(n), rate(n, 2), rate(n, k=3), plain(n), plain(n, k=2), plain("s")
    return typed(1), typed(1.0), typed(2, k=3, z=4), typed(3, 4, z="x")
# then
print(change(3))
print(rate(3), rate(3, 2), rate(3, k=3), plain(3), plain(3, k=2), plain("s"), plain(3) is plain(3))
print(typed(3, 4, z="x"), typed(2, k=3, z=4), typed(1))
# --
objects with slots
class Account:
    __slots__ = ("log", "n", "gone")
    def __init__(self): self.log, self.n, self.gone = [], 0, 1
ACCOUNT = Account()
def change(n):
    ACCOUNT.n += n
    ACCOUNT.log.append(n)
    if n > 2: del ACCOUNT.gone
    return ACCOUNT.n
# then
log = ACCOUNT.log
print(change(2), change(3), ACCOUNT.n, ACCOUNT.log is log, log, hasattr(ACCOUNT, "gone"))
# --
attributes
import json
class Other: pass
OTHER = Other()
Other.__module__ = "json"
def helper(): pass
helper.seen = []
def change(n):
    change.calls = getattr(change, "calls", 0) + 1
    helper.seen.append(n)
    json.OF_SCRIPT = OTHER.held = n
    return change.calls
# then
print(change(1), change(2), change.calls, helper.seen, json.OF_SCRIPT, OTHER.held)
# --
what is called back
HOOKS = []
class Made: pass
def on_done(n): print("done", n)
def change(n):
    HOOKS.extend([on_done, Made, int])
# then
change(1)
HOOKS[0](5)
print(HOOKS[1] is Made, HOOKS[2] is int)
# --
settings of the process
import gc, os, signal, socket, sys, warnings
def handler(number, frame): pass
def change(n):
    os.umask(0o077)
    os.makedirs("below", exist_ok=True)
    os.chdir("below")
    sys.setrecursionlimit(1234)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGUSR1, handler)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    socket.setdefaulttimeout(3.5)
    sys.path.insert(0, "nowhere")
    gc.disable()
def draw():
    os.chdir("..")
# then
change(1)
warnings.warn("not seen")
print(sys.getrecursionlimit(), signal.getsignal(signal.SIGUSR1) is handler, signal.getsignal(signal.SIGUSR2))
print(socket.getdefaulttimeout(), sys.path[0], gc.isenabled(), os.path.basename(os.getcwd()))
draw()
# --
logging
import logging, sys
LOG = logging.getLogger("of.script")
def change(n):
    LOG.setLevel(logging.DEBUG)
    LOG.propagate = False
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    handler.setLevel(logging.INFO)
    LOG.addHandler(handler)
    logging.getLogger("quiet").disabled = True
    LOG.info("in the tool")
# then
change(1)
LOG.debug("not seen")
LOG.info("seen")
logging.getLogger("quiet").error("not seen")
print(LOG.level, LOG.handlers)
# --
exit handlers
import atexit
def bye(word): print("bye", word)
def change(n): atexit.register(bye, n)
# then
change("now")
# --
what is printed
class Told:
    def __str__(self):
        print("told")
        return "T"
class Bad:
    def __str__(self): raise ValueError("no text")
def change(n):
    print("in the tool", Told(), end="")
    print("", n)
# then
import traceback
change(1)
print("a", Told(), sep="-", flush=True)
try:
    print("x", Bad())
except ValueError:
    print(traceback.format_exc())
"""
CASES = [part.strip("\n").partition("\n") for part in CASES_TEXT.split("# --\n")]


def test_what_tools_do_is_done_and_done_again(scripts: Scripts) -> None:
    """Each case is a module beside the script: its functions are tools of the script all the same."""
    imports: list[str] = []
    runs: list[str] = []
    for number, (name, _, text) in enumerate(CASES):
        body, run = text.split("\n# then\n")
        scripts.write(body, f"case_{number}.py")
        imports.append(f"import case_{number}")
        runs.append(f"print({name!r})\nexec(compile({run!r}, 'case', 'exec'), vars(case_{number}))")
    done = as_bare(scripts, offering("\n".join(imports), NAMES, "\n".join(runs)))
    assert "not recorded: nothing" in done.err, done.err


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_whose_exception_nobody_catches(scripts: Scripts, is_async: bool) -> None:
    body = "def deep(n):\n    assert n, 'no number'\n"
    if is_async:
        body += "async def fail(n):\n    try:\n        deep(n)\n    except AssertionError:\n        raise ValueError(n)"
        run = "import asyncio\nasync def main():\n    await fail(0)\nasyncio.run(main())"
    else:
        body += (
            "def fail(n):\n    try:\n        deep(n)\n    except AssertionError:\n        raise ValueError(n)"
        )
        run = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    fail(0)"
    as_bare(scripts, offering(body, ("fail",), run), code=1)


def test_a_tool_that_fails_in_a_thread(scripts: Scripts) -> None:
    body = "import threading\ndef fail(n):\n    raise ValueError(n)"
    run = "thread = threading.Thread(target=fail, args=(1,), name='W')\nthread.start()\nthread.join()\nprint('on')"
    as_bare(scripts, offering(body, ("fail",), run))


def test_lines_of_threads_are_whole(scripts: Scripts) -> None:
    body = "def work(n):\n    for one in range(60):\n        print('tool', n, one, 'x' * 20)\n    return n"
    run = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n"
    run += "    print(sum(pool.map(work, range(4))))"
    path = scripts.write(offering(body, ("work",), run))
    done = record(scripts, path, asking())
    lines = done.out.splitlines()
    assert len(lines) == 4 * 60 + 1
    assert all(re.fullmatch(r"tool [0-3] \d+ x{20}|6", line) for line in lines), done.out
    again = scripts.replay()
    assert again.code == 0, again.all
    assert again.out.startswith(done.out)


UNKEPT = """
import contextvars, io, logging, queue, signal, sys, threading
def numbers(): yield from range(9)
NUMBERS, PAIRS, JOBS = numbers(), zip("ab", "cd"), queue.SimpleQueue()
STOP = threading.Event()
class Handler:
    def __call__(self, number, frame): pass
def change(n):
    next(NUMBERS)
    next(PAIRS)
    JOBS.put(n)
    threading.Thread(target=STOP.wait).start()
    signal.signal(signal.SIGUSR1, Handler())
    contextvars.ContextVar("nameless").set(n)
    logging.getLogger("of.file").addHandler(logging.FileHandler("written.log", delay=True))
    sys.stdout = io.TextIOWrapper(io.BytesIO(), write_through=True)
"""


def test_what_does_not_come_back_is_named_and_a_replay_says_so(scripts: Scripts) -> None:
    path = scripts.write(offering(UNKEPT, ("change",), "change(1)\nsys.stdout = sys.__stdout__\nSTOP.set()"))
    with FakeProvider(asking()) as provider:
        done = scripts.call("--json", "run", str(path), env=provider.env())
    assert done.code == 0, done.all
    again = scripts.call("--json", "replay", "last")
    assert again.code == 0, again.all
    for said in (done.out, again.out):
        for what in (
            "advances the generator NUMBERS",
            "may advance PAIRS",
            "puts into or takes from JOBS",
            "starts a thread that goes on after it",
            "sets a handler of SIGUSR1, which a replay does not find by a name",
            "sets the context variable nameless, which has no name in a module",
            "replaces sys.stdout",
            "gives the logger of.file a handler that writes nothing on replay",
        ):
            assert f"calls tool change, which {what}" in said, (what, said)


def test_a_secret_that_a_tool_sets_is_not_written(scripts: Scripts) -> None:
    body = "def change(n):\n    os.environ['SHOP_TOKEN'] = 'tok-' + 'Zx81Kq44Vw' * 2\n    os.environ['PLAIN'] = 'open'"
    run = "change(1)\nprint(os.environ['PLAIN'], len(os.environ['SHOP_TOKEN']) > 3)"
    path = scripts.write(offering(body, ("change",), run))
    done = record(scripts, path, asking())
    assert done.out == "open True\n", done.all
    assert "Zx81Kq44Vw" not in "".join(
        file.read_bytes().decode("latin-1") for file in scripts.store.rglob("*") if file.is_file()
    ).replace("'tok-' + 'Zx81Kq44Vw' * 2", "")
    again = scripts.replay()
    assert again.code == 0, again.all
    assert again.out.startswith("open True\n-- IDENTICAL")
