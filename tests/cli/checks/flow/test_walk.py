"""Statements and functions: where values go within a file and across files."""

from __future__ import annotations

from tests.cli.checks.flow.agents import HEAD, findings, names, of_agent, of_script


def test_a_value_is_followed_through_functions() -> None:
    helpers = """
    def parts(words): return list(words)
    def text(words): return ", ".join(parts(words))
    """
    assert names("search(text(tags))", before=helpers) == ["set-order"]
    assert names("search(text(sorted(tags)))", before=helpers) == []


def test_a_value_is_followed_into_another_file() -> None:
    found = findings(
        HEAD + "import helper\n@agent\ndef run(given): return search(helper.text(given))\n",
        helper="def text(given):\n    return ', '.join(set(given))\n",
    )
    assert [(one.file, one.line, one.check) for one in found] == [("helper.py", 2, "set-order")]
    assert "in the arguments of search(...) in agent.py:9" in found[0].said


def test_either_branch_counts() -> None:
    assert names("text = ''\nif given: text = str(tags)\nsearch(text)") == ["set-order"]
    assert names("try: text = str(tags)\nexcept ValueError: text = ''\nsearch(text)") == ["set-order"]
    assert names("with given as x: text = str(tags)\nsearch(text)") == ["set-order"]
    assert names("match given:\n    case 1: text = str(tags)\nsearch(text)") == ["set-order"]
    assert names("while given: text = str(tags)\nsearch(text)") == ["set-order"]


def test_recursion_ends() -> None:
    helper = "def walk(words): return [*words] if words else walk(words)"
    assert names("search(walk(tags))", before=helper) == ["set-order"]


def test_a_generator_yields_in_the_order_of_its_loop() -> None:
    helper = "def each(words):\n    for word in words: yield word.upper()"
    assert names("search(list(each(tags)))", before=helper) == ["set-order"]


def test_the_part_for_main_of_an_agent_is_outside_of_every_run() -> None:
    text = HEAD + "@agent\ndef run(given): return search(given)\n"
    text += "if __name__ == '__main__':\n    import sys\n    print(run.run(list({*sys.argv})))\n    open('x', 'w')\n"
    assert findings(text) == []


def test_a_script_is_all_of_it_in_the_run_and_prints_its_output() -> None:
    assert of_script("words = {*input().split()}\nprint(words)\nprint(sorted(words))") == [(2, "set-order")]
    assert of_script("import time\nSTART = time.time()\nprint(START)") == []
    assert of_script("LOG = []\ndef f(x=[]):\n    x.append(1)\n    LOG.append(x)\n    print(LOG)\nf()") == []


def test_import_time_values_of_modules_that_a_script_imports() -> None:
    found = findings(
        "import when\nprint(when.now())\n", when="import time\nT = time.time()\ndef now(): return T\n"
    )
    assert [(one.file, one.line, one.check) for one in found] == [("when.py", 2, "import-time")]


def test_a_handler_that_catches_everything() -> None:
    assert of_agent("try: search(given)\nexcept: pass") == [(2, "swallow")]
    assert of_agent("try: search(given)\nexcept BaseException: raise") == []
    assert of_agent("try: given()\nexcept: pass") == []


def test_odd_syntax_is_walked() -> None:
    text = "async def f():\n    async with a as b, c: pass\n    async for x in y: await x\n    del x\n"
    text += "def g(*a, k=1, **kw):\n    global G\n    G = (yield)\n    yield from a\n    return lambda x, /, y=2: x\n"
    text += "class C: x: int = 1\n"
    text += "x = [*a, *b]; y = {**c, 'd': 1}; z = a[1:2, ...]; (w := 3); assert x, y\nprint(f'{x!r:>{w}}')\n"
    assert findings(text) == []
