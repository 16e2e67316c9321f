"""Tools of scripts that change what they are given: the recorded program does what it does without agentloom, and a
replay, which runs no tool, comes to the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.testing.fake_provider import FakeProvider
from tests.cli.scripts import Done, Scripts
from tests.cli.test_script_openai import asking, record


def offering(body: str, names: tuple[str, ...], run: str) -> str:
    """A script that offers ``names`` to a model, and then runs ``run``."""
    return f"""
import json, os, sys, dataclasses, httpx2
URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
{body}
tools = [{{"type": "function", "function": {{"name": name, "parameters": {{}}}}}} for name in {names!r}]
httpx2.post(URL, json={{"model": "m", "messages": [], "tools": tools}})
{run}
"""


def bare(scripts: Scripts, path: Path) -> Done:
    with FakeProvider(asking()) as provider:
        return scripts.bare(path.name, env=provider.env() | {"PYTHONHASHSEED": "0"})


def same(scripts: Scripts, text: str) -> Done:
    """Run a script by itself, record it, and replay it: three times the same output. The recorded run."""
    path = scripts.write(text)
    alone = bare(scripts, path)
    assert alone.code == 0, alone.all
    done = record(scripts, path, asking())
    assert done.out == alone.out, done.all
    assert done.code == 0, done.all
    again = scripts.replay()
    assert again.code == 0, again.all
    assert again.out.startswith(alone.out + "-- IDENTICAL"), again.all
    return done


CASES_TEXT = """
an argument that comes to hold itself
def add(cart):
    cart.append(cart)
    return len(cart)
# then
cart = [1]
print(add(cart), cart[1] is cart, cart)
# --
mappings and lists of derived kinds
import collections
COUNTS, LAST = collections.defaultdict(int), collections.deque(maxlen=2)
ORDER, TALLY = collections.OrderedDict(a=1, b=2), collections.Counter()
def add(name):
    COUNTS[name] += 1
    LAST.append(name)
    ORDER.move_to_end('a')
    TALLY[name] += 2
    return len(LAST)
# then
print(add('x'), add('y'), add('z'), add('z'))
print(COUNTS, LAST, LAST.maxlen, ORDER, TALLY, COUNTS['new'])
# --
an object of the program
class Account:
    rate = 1
    def __init__(self):
        self.balance, self.log = 10, []
ACCOUNT = Account()
def add(cents):
    ACCOUNT.balance += cents
    ACCOUNT.log.append(cents)
    Account.rate = cents
    return ACCOUNT.balance
# then
log = ACCOUNT.log
print(add(5), add(6), ACCOUNT.balance, ACCOUNT.log is log, log, Account.rate)
# --
a tuple that is the argument
def add(pair):
    pair[0].append(1)
    return pair
# then
pair = ([],)
print(add(pair) is pair, pair)
# --
append
def add(cart, item):
    cart.append(item)
    return len(cart)
# then
cart = [{'a': 1}]
first = cart[0]
print(add(cart, {'b': 2}), add(cart, 'c'), cart, cart[0] is first)
# --
a result that is the argument
def add(cart, item):
    cart.append(item)
    return cart
# then
cart = []
other = add(cart, 'a')
other.append('b')
print(cart, other is cart, add(other, 'c') is cart)
# --
a result that holds the argument
def add(cart, item):
    cart['items'].append(item)
    return {'cart': cart, 'items': cart['items'], 't': (cart,)}
# then
cart = {'items': []}
made = add(cart, 'a')
print(made['cart'] is cart, made['items'] is cart['items'], made['t'][0] is cart)
made['items'].append('x')
print(cart)
# --
state
def add(state, name):
    state[name] = {'n': 1}
    state['inner']['k'] = name
    del state['gone']
# then
inner = {'k': 0}
state = {'inner': inner, 'gone': 1}
add(state, 'x')
print(state, inner, state['inner'] is inner)
# --
a mutable default as a cache
def add(n, cache={}):
    hit = n in cache
    cache[n] = n * 2
    return [hit, dict(cache)]
# then
print(add(1), add(1), add(2), add.__defaults__)
# --
a keyword-only default
def add(n, *, seen=[]):
    seen.append(n)
    return list(seen)
# then
print(add(1), add(2), add.__kwdefaults__)
# --
fields
@dataclasses.dataclass
class Order:
    total: int
    lines: list
def add(order, n):
    order.total += n
    order.lines.append(n)
    return order
# then
order = Order(1, [])
lines = order.lines
print(add(order, 2) is order, order, lines)
order.lines = []
print(add(order, 3), lines)
# --
fields in slots, frozen with a list
@dataclasses.dataclass(slots=True)
class Slots:
    n: int
@dataclasses.dataclass(frozen=True)
class Frozen:
    items: list
def add(a, b):
    a.n += 1
    b.items.append(a)
    return b.items
# then
a, b = Slots(1), Frozen([])
print(add(a, b), b.items[0] is a, a)
a.n = 7
print(b)
# --
a model
import pydantic
class Cart(pydantic.BaseModel):
    items: list = []
    note: str | None = None
    _n: int = 0
def add(cart, item):
    cart.items.append(item)
    cart.note = 'x'
    cart._n += 1
    return cart
# then
cart = Cart()
items = cart.items
print(add(cart, 1) is cart, repr(cart), cart._n, items is cart.items, cart.model_fields_set)
# --
sets and bytes
def add(names, data):
    names |= {f'name{n}' for n in range(40)}
    names.discard('name3')
    data += b'xy'
    return names
# then
names, data = {'z'}, bytearray(b'a')
print(add(names, data) is names, names == set(names), data)
print(sorted(names)[:3], len(names))
# --
variables of arguments by star
def add(*lists, **more):
    for one in lists: one.append(1)
    more['d']['k'] = 2
# then
a, b, d = [], [0], {}
add(a, b, d=d)
print(a, b, d)
# --
removed and sorted
def add(items):
    first = items.pop(0)
    items.sort(key=lambda one: -one['n'])
    return first
# then
items = [{'n': n} for n in range(5)]
old = list(items)
first = add(items)
print(items, first is old[0], items[0] is old[4])
old[4]['n'] = 9
print(items)
# --
the same object twice
def add(a, b):
    a.append(1)
    return [a is b, b]
# then
a = []
made = add(a, a)
print(made, made[1] is a)
# --
new objects that are one
def add(cart):
    item = {'n': 1}
    cart.append(item)
    cart.append(item)
    return item
# then
cart = []
item = add(cart)
item['n'] = 5
print(cart, cart[0] is item)
# --
an error after a change
def add(account):
    account['tries'] += 1
    print('trying')
    raise LookupError('no')
# then
account = {'tries': 0}
for _ in range(2):
    try:
        add(account)
    except LookupError as error:
        print(error, account, vars(error))
# --
a variable of the script
CART = []
COUNT = 0
ORDERS = {1: {'state': 'new'}}
def save(item):
    global COUNT
    COUNT += 1
    CART.append(item)
def add(item):
    save(item)
    print('saved')
    return COUNT
def look(n):
    return ORDERS[n]
# then
print(add('a'), add('b'), CART, COUNT)
order = look(1)
order['state'] = 'old'
print(ORDERS, look(1) is order)
# --
a variable of a closure
def make():
    total, items = 0, []
    def add(n):
        nonlocal total
        total += n
        items.append(n)
        return total
    def seen():
        return total, items
    return add, seen
add, seen = make()
# then
print(add(1), add(2), seen())
# --
wrong arguments
def add(item):
    return item
# then
try:
    add()
except TypeError as error:
    print(error)
try:
    add(1, nope=2)
except TypeError as error:
    print(error)
# --
async
import asyncio
async def add(cart, n):
    await asyncio.sleep(0.01 * (3 - n))
    cart.append(n)
    return cart
# then
async def main():
    cart = []
    done = await asyncio.gather(add(cart, 1), add(cart, 2))
    print(cart, [one is cart for one in done])
asyncio.run(main())
# --
threads
from concurrent.futures import ThreadPoolExecutor
RESULTS = {}
def add(n, into):
    RESULTS[n] = n * 2
    into.append(n)
    return into
# then
lists = [[], [], []]
with ThreadPoolExecutor(3) as pool:
    done = list(pool.map(add, range(3), lists))
print(lists, sorted(RESULTS), [one is other for one, other in zip(done, lists)])
"""
CASES: dict[str, list[str]] = {
    name: text.split("\n# then\n")
    for name, _, text in (part.strip("\n").partition("\n") for part in CASES_TEXT.split("# --\n"))
}


def test_what_a_tool_changes_in_place_is_changed(scripts: Scripts) -> None:
    """Each case is a module beside the script: its functions are tools of the script all the same."""
    runs: list[str] = []
    for number, (body, run) in enumerate(CASES.values()):
        scripts.write(f"import dataclasses\n{body}", f"case_{number}.py")
        runs.append(f"import case_{number}")
        runs.append(f"print({number})\nexec({run!r}, vars(case_{number}))")
    text = offering("\n".join(runs[::2]), ("add", "look"), "\n".join(runs[1::2]))
    done = same(scripts, text)
    assert "not recorded: nothing" in done.err, done.err


@pytest.mark.parametrize("name", ["append", "a variable of the script", "an error after a change"])
def test_so_it_is_in_the_script_itself(scripts: Scripts, name: str) -> None:
    body, run = CASES[name]
    same(scripts, offering(body, ("add", "look"), run))


def test_a_change_that_cannot_be_recorded_is_told_and_a_replay_stops_there(scripts: Scripts) -> None:
    body = "class Connection: pass\ndef add(state):\n    state['connection'] = Connection()\n    return 1"
    run = "state = {}\nadd(state)\nprint(type(state['connection']).__name__)"
    path = scripts.write(offering(body, ("add",), run))
    done = record(scripts, path, asking())
    assert done.out == bare(scripts, path).out == "Connection\n"
    assert (
        "tool add, which changes its argument state in place (connection is __main__.Connection" in done.err
    ), done.err
    assert "let tools take and return plain data" in done.err
    again = scripts.replay()
    assert again.code == 3, again.all
    assert "tool add, which changes its argument state in place" in again.out
    assert "agent.py:11" in again.out


def test_a_variable_that_cannot_be_recorded_is_told_and_a_replay_goes_on(scripts: Scripts) -> None:
    body = (
        "class Client: pass\nCLIENT = None\nCACHE = {}\ndef add(n):\n    global CLIENT\n"
        "    CLIENT = CLIENT or Client()\n    CACHE[n] = CLIENT\n    return n"
    )
    path = scripts.write(offering(body, ("add",), "print(add(1), add(2))"))
    done = record(scripts, path, asking())
    assert done.out == bare(scripts, path).out == "1 2\n"
    assert "tool add, which sets CLIENT to __main__.Client" in done.err, done.err
    assert "tool add, which changes CACHE in place" in done.err, done.err
    assert "a replay refuses these" not in done.err
    assert scripts.replay().code == 0


def test_an_exception_is_the_programs_own_while_recording(scripts: Scripts) -> None:
    body = (
        "def add(n):\n    class Local(Exception): pass\n    global KIND\n    KIND = Local\n"
        "    error = Local('no')\n    error.response = open\n    raise error"
    )
    run = (
        "try:\n    add(1)\nexcept Exception as error:\n    print(type(error) is KIND, error.response is open)"
    )
    path = scripts.write(offering(body, ("add",), run))
    done = record(scripts, path, asking())
    assert done.out == bare(scripts, path).out == "True True\n"
    assert "tool add, which raises add.<locals>.Local, which a replay does not find" in done.err, done.err


def test_a_replay_of_other_code_is_served_what_was_recorded(scripts: Scripts) -> None:
    body = "ORDERS = {1: {'state': 'new'}}\nSEEN = []\ndef look(n):\n    SEEN.append(n)\n    return ORDERS[n]"
    path = scripts.write(offering(body, ("look",), "order = look(1)\nprint(order)"))
    assert record(scripts, path, asking()).out == "{'state': 'new'}\n"
    shown = scripts.call("show", "last")
    assert 'look  WRITE -> {"state": "new"}' in shown.out, shown.all
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("'new'", "'other'").replace("SEEN", "KEPT"), encoding="utf-8")
    again = scripts.replay()
    assert again.code == 0, again.all
    assert again.out.startswith("{'state': 'new'}\n")
    assert "calls tool look, which changed SEEN when recorded, which is not there now" in again.out, again.all
    path.write_text(text.replace("{1: {", "{2: {"), encoding="utf-8")
    assert scripts.replay().code == 0
