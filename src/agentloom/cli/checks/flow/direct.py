"""What is a finding wherever its value goes: effects, threads, hashes, what the guard does not see."""

from __future__ import annotations

import ast

from agentloom.cli.checks.flow.frame import Frame, text
from agentloom.cli.checks.flow.names import last
from agentloom.cli.checks.flow.origins import HIDDEN, READS, REFUSED, effect_of, origin_of
from agentloom.cli.checks.flow.values import Value

__all__ = ["Direct"]

_PATH_WRITES = frozenset(
    ["write_text", "write_bytes", "mkdir", "unlink", "touch", "rename", "rmdir", "symlink_to"]
)
_PATH_READS = frozenset(
    ["read_text", "read_bytes", "iterdir", "glob", "rglob", "stat", "exists", "is_file", "is_dir"]
)
_SURE = frozenset(["write_text", "write_bytes", "read_text", "read_bytes"])
"""Methods that nothing but a path has."""
_ANYWHERE = frozenset(["unseen-random", "unseen-clock"])
_NUMBERS = frozenset(["int", "float"])


class Direct(Frame):
    """A frame that judges calls by what they do."""

    def judge_call(self, call: ast.Call, full: str, receiver: Value, args: list[Value]) -> None:
        """Findings of a call of ``full`` that need no sink."""
        if not self.in_run:
            if full == "locale.setlocale" and _names_no_locale(call):
                self.report("locale", call, f"{text(call)} takes the locale of the process")
            return
        self._effects(call, full, receiver)
        if full == "hash" and not self._in_hash() and not (args and args[0].kind.name in _NUMBERS):
            self.report("hash", call, f"{text(call)} is another number in another process")
        self._by_identity(call, full)
        if self.program.strict and full in REFUSED and not self.allowed:
            self.report(
                "address" if full == "id" else "machine", call, f"{text(call)} is refused in an agent"
            )
        rule = origin_of(full, in_run=True)
        if rule in _ANYWHERE and not self.seeded(full):
            self.report(rule, call, f"{text(call.func)}(...) comes past the guard")

    def _by_identity(self, call: ast.Call, full: str) -> None:
        """``sorted(words, key=hash)``, ``map(id, words)``: the function itself is handed on."""
        handed = [keyword.value for keyword in call.keywords if keyword.arg == "key"]
        handed += call.args[:1] if full in ("map", "filter", "functools.partial", "itertools.groupby") else []
        for one in handed:
            name = one.id if isinstance(one, ast.Name) else ""
            if name in ("hash", "id") and self.lookup(name) is None and self.file.top(name) is None:
                what = "another number in another process" if name == "hash" else "an address of the process"
                self.report("hash" if name == "hash" else "address", one, f"{text(call)} goes by {what}")

    def judge_name(self, node: ast.expr, full: str) -> None:
        """Findings of a name that is read."""
        if full == "sys.stdin" and self.in_run and self.program.strict:
            self.report(
                "unrecorded-effect", node, "sys.stdin is read in an agent: input() is the question `ask`"
            )

    def judge_container(self, node: ast.expr, members: list[ast.expr]) -> None:
        """A clock or generator that a container keeps from import on."""
        if self.in_run:
            return
        for member in members:
            full = self.names.full(member) if isinstance(member, ast.Name | ast.Attribute) else ""
            if full and HIDDEN.fullmatch(full):
                said = f"{text(member)} is kept in {text(node)}, where the guard does not find it"
                self.report("hidden-clock", member, said)

    def _effects(self, call: ast.Call, full: str, receiver: Value) -> None:
        what = effect_of(full)
        reads = full in READS
        if full in ("open", "io.open", "os.open", "builtins.open"):
            what, reads = ("writes files", False) if _writes(call, 1) else (None, True)
        if (what == "opens a database" and _in_memory(call)) or (
            full == "locale.setlocale" and len(call.args) < 2
        ):
            what = None
        name = last(full)
        of_path = receiver.kind.name == "path" or (name in _SURE and isinstance(call.func, ast.Attribute))
        if of_path and isinstance(call.func, ast.Attribute):
            what = "writes files" if name in _PATH_WRITES or (name == "open" and _writes(call, 0)) else what
            reads = reads or name in _PATH_READS or (name == "open" and not _writes(call, 0))
        if self.allowed or (last(full) == "open" and _uses_descriptor(call)):
            return
        if what is not None:
            self.report("unrecorded-effect", call, f"{text(call.func)}(...) {what} outside of a tool")
        elif reads and self.program.strict:
            said = f"{text(call.func)}(...) reads the file system outside of a tool: refused in an agent"
            self.report("unrecorded-effect", call, said)
        elif reads and name not in ("exists", "is_file", "is_dir", "isfile", "isdir", "stat"):
            self.report(
                "unrecorded-read", call, f"{text(call.func)}(...) reads the file system outside of a tool"
            )

    def _in_hash(self) -> bool:
        return self.function is not None and last(self.function.name) in ("__hash__", "__eq__")

    def seeded(self, full: str) -> bool:
        """Whether the generator behind ``full`` is seeded somewhere in the file with a constant."""
        package = full.partition(".")[0]
        seeds = {
            "numpy": "numpy.random.seed",
            "torch": "torch.manual_seed",
            "tensorflow": "tensorflow.random.set_seed",
        }
        wanted = seeds.get(package)
        if wanted is None or self.program.is_agent:  # in one process runs share the generator, seeded or not
            return False
        return any(
            isinstance(node, ast.Call) and self.names.full(node.func) == wanted
            for node in ast.walk(self.file.source.tree)
        )


def _names_no_locale(call: ast.Call) -> bool:
    if len(call.args) < 2:
        return False
    chosen = call.args[1]
    return isinstance(chosen, ast.Constant) and chosen.value == ""


def _writes(call: ast.Call, position: int) -> bool:
    """Whether the mode of an ``open`` writes; a mode that is no constant is taken for reading."""
    mode: ast.expr | None = call.args[position] if len(call.args) > position else None
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), mode)
    return (
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and any(c in mode.value for c in "wax+")
    )


def _in_memory(call: ast.Call) -> bool:
    return any(isinstance(arg, ast.Constant) and arg.value == ":memory:" for arg in call.args[:1])


def _uses_descriptor(call: ast.Call) -> bool:
    """``open(3)``: a number is no path."""
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int)
