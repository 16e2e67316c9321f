"""The functions and classes of a target, and which of them run inside of a run.

A target is an agent (functions under ``@agent``, steps of a workflow: what they reach runs in a run, the rest of their
modules is run by import), or a script (all of it is in the run). Tools are host work in both: nothing in them is looked
at but what they leave behind. Who calls whom goes by names, which says yes too often and never too seldom.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentloom.cli.checks.findings import Source
from agentloom.cli.checks.flow.names import Names, last, package_of
from agentloom.cli.checks.flow.roles import (
    MODEL_PACKAGES,
    FunctionNode,
    executors_of,
    guard_of,
    is_agent,
    is_prompt,
    is_tool,
    is_tool_class,
    recorded_of,
    steps_of,
    tools_of,
)

__all__ = ["Class", "File", "Function", "Program"]

Role = Literal["run", "host", "outside"]
_REPRS = frozenset(["__repr__", "__str__", "__format__"])
_PLAIN_BASES = frozenset(["object", "ABC", "Generic", "Protocol"])


@dataclass(eq=False)
class Function:
    """A function of the target. ``root``: an agent or a step; ``recorded``: a root by ``record(...)``, whose guard is
    virtual; ``prompt``: what it returns goes to a model."""

    file: File
    node: FunctionNode
    name: str
    cls: Class | None = None
    role: Role = "outside"
    root: bool = False
    prompt: bool = False
    tool: bool = False
    recorded: bool = False

    @property
    def params(self) -> list[ast.arg]:
        """Its parameters in order."""
        args = self.node.args
        return [*args.posonlyargs, *args.args, *args.kwonlyargs]


@dataclass(eq=False)
class Class:
    """A class of the target. ``plain``: neither it nor a base says how an instance is shown."""

    file: File
    node: ast.ClassDef
    name: str
    methods: dict[str, Function] = field(default_factory=dict[str, Function])
    shown: frozenset[str] = frozenset()
    plain_bases: bool = False


@dataclass(eq=False)
class File:
    """A file of the target. ``level``: what its module level is (``run`` of a script, ``import``)."""

    source: Source
    names: Names
    module: str
    functions: list[Function] = field(default_factory=list[Function])
    classes: dict[str, Class] = field(default_factory=dict[str, Class])
    level: Literal["run", "import"] = "import"

    def top(self, name: str) -> Function | None:
        """The module's function of this name."""
        found = (one for one in self.functions if one.name == name and one.cls is None)
        return next(found, None)


class Program:
    """All files of a target together. ``entry``: how many of the first files were named by the target itself."""

    def __init__(self, sources: Sequence[Source], entry: int = 1, name: str | None = None) -> None:
        self.files = [_file(source) for source in sources if not source.problem]
        self._by_name: dict[str, list[Function]] = {}
        self._refers: dict[Function, frozenset[Function]] = {}
        for function in self.functions:
            self._by_name.setdefault(last(function.name), []).append(function)
        self._classes = {name: cls for file in self.files for name, cls in file.classes.items()}
        self.is_agent = False
        """Whether the target defines agents or workflows; else it is a script."""
        self.strict = False
        """Whether reads are refused: in an agent, unless it says that its guard is another."""
        self.chosen = False
        """Whether the target is one agent of its file: what it does not reach is not looked at."""
        self._roles(self.files[:entry], name)

    @property
    def functions(self) -> Iterator[Function]:
        """Every function of every file."""
        return (function for file in self.files for function in file.functions)

    def cls(self, name: str) -> Class | None:
        """The class of this name, wherever it is defined."""
        return self._classes.get(name)

    def named(self, name: str) -> list[Function]:
        """The functions whose last name is ``name``."""
        return self._by_name.get(name, [])

    def file_of(self, module: str) -> File | None:
        """The file that is imported as ``module``."""
        return next(
            (file for file in self.files if file.module == module or file.module.endswith("." + module)), None
        )

    def function(self, file: File, full: str) -> Function | None:
        """The function that the full dotted name stands for in ``file``: its own, or one of another."""
        if "." not in full:
            return file.top(full)
        module, _, name = full.rpartition(".")
        other = self.file_of(module)
        return other.top(name) if other is not None else None

    # -- roles -------------------------------------------------------------------------------------------------------

    def _roles(self, entry: Sequence[File], name: str | None) -> None:
        tools = {one for file in self.files for one in tools_of(file.source.tree, file.names)}
        tools |= {one for file in self.files for one in executors_of(file.source.tree)}
        steps = {one for file in self.files for one in steps_of(file.source.tree, file.names)}
        recorded: dict[File, set[str]] = {}
        for file in self.files:
            recorded[file], at_level = recorded_of(file.source.tree, file.names)
            file.level = "run" if at_level else "import"
        for function in self.functions:
            simple = last(function.name)
            cls = function.cls
            in_tool_class = cls is not None and (is_tool_class(cls.node) or cls.node.name in tools)
            function.tool = is_tool(function.node, function.file.names) or in_tool_class
            function.tool = function.tool or (simple in tools and function.cls is None)
            function.prompt = is_prompt(function.node)
            named = name is not None and function.name == name and function.file in entry
            function.recorded = simple in recorded.get(function.file, ())
            function.root = not function.tool and (
                is_agent(function.node, function.file.names) or simple in steps or named or function.recorded
            )
        chosen = [one for one in self.functions if one.root and one.name == name and one.file in entry]
        self.is_agent = any(one.root for one in self.functions) or any(map(is_workflow, self.files))
        level = [file for file in self.files if file.level == "run"]
        scripts = level if self.is_agent or level else self._scripts(entry)
        for file in scripts:
            file.level = "run"
        roots = [one for one in self.functions if one.root or (one.file in scripts and not one.tool)]
        if not roots and not scripts and not self.is_agent:
            roots = [one for one in self.functions if not one.tool]
        if (
            chosen and not scripts
        ):  # the target names one agent: others of its files are looked at where it reaches them
            roots, self.chosen = chosen, True
        self._reach(roots, scripts)
        for function in self.functions:
            function.root = function.root and function.role == "run"
        strict = (
            guard_of(one.node, one.file.names) for one in self.functions if one.root and not one.recorded
        )
        self.strict = self.is_agent and any(guard in (None, "strict") for guard in strict)

    def _scripts(self, entry: Sequence[File]) -> list[File]:
        """The files that are run by themselves: those that no other file imports."""
        imported = {name for file in self.files for name in file.names.imported}
        if len(entry) == 1:
            return list(entry)
        return [file for file in entry if file.module not in imported and self._speaks(file, set())]

    def _speaks(self, file: File, seen: set[File]) -> bool:
        """Whether a file of a folder has to do with models, by what it imports: other programs in it are no agents."""
        seen.add(file)
        if any(name.partition(".")[0] in MODEL_PACKAGES for name in file.names.imported):
            return True
        others = (other for name in file.names.imported if (other := self.file_of(name)) is not None)
        return any(self._speaks(other, seen) for other in others if other not in seen)

    def _reach(self, roots: Sequence[Function], scripts: Sequence[File]) -> None:
        levels = [(file, file.source.tree.body) for file in scripts]
        made = [(file, [*_plainly(file.source.tree.body)]) for file in self.files]
        # A method is called only where somebody has its class in hand: what is reached, and which classes that code
        # names, grow until neither does.
        live, before = {cls for file, body in made for cls in self._classes_in(file, body)}, -1
        live |= {one.cls for one in roots if one.cls is not None}
        run: set[Function] = set()
        while len(live) + len(run) != before:
            before = len(live) + len(run)
            run = self._spread(roots, levels, live)
            live |= {cls for one in run for cls in self._classes_in(one.file, [one.node])}
            live |= {base for cls in live for base in self._classes_in(cls.file, cls.node.bases)}
        for one in run:
            one.role = "run"
        tools = [one for one in self.functions if one.tool]
        for one in self._spread(tools, [], set(self._classes.values())) - run:
            one.role = "host"
        for one in tools:
            one.role = "host"

    def _spread(
        self, roots: Sequence[Function], levels: Sequence[tuple[File, list[ast.stmt]]], live: set[Class]
    ) -> set[Function]:
        """``roots`` and all that they, and code at the level of a module, refer to; of classes the ``live`` ones."""
        first = [one for file, body in levels for one in self._referred(file, body) if not one.tool]
        found = {*roots, *(one for one in first if one.cls is None or one.cls in live)}
        waiting = [*found]
        while waiting:
            for other in self.refers(waiting.pop()):
                if other not in found and not other.tool and (other.cls is None or other.cls in live):
                    found.add(other)
                    waiting.append(other)
        return found

    def _classes_in(self, file: File, body: Iterable[ast.AST]) -> Iterator[Class]:
        """The classes of the target that code names."""
        for node in (node for one in body for node in ast.walk(one)):
            if isinstance(node, ast.Name):
                name = last(file.names.stands(node.id) or node.id)
            elif isinstance(node, ast.Attribute):
                name = node.attr
            else:
                continue
            cls = self._classes.get(name)
            if cls is not None:
                yield cls

    def refers(self, function: Function) -> frozenset[Function]:
        """Every function of the target that a function may call."""
        found = self._refers.get(function)
        if found is None:
            found = self._refers[function] = frozenset(self._referred(function.file, function.node.body))
        return found - {function}

    def _referred(self, file: File, body: Iterable[ast.AST]) -> Iterator[Function]:
        for node in (node for one in body for node in ast.walk(one)):
            if isinstance(node, ast.Name):
                yield from self._by_plain_name(file, node.id)
            elif isinstance(node, ast.Attribute):
                yield from self._by_attribute(file, node.attr)

    def _by_plain_name(self, file: File, name: str) -> Iterator[Function]:
        stands = file.names.stands(name)
        other = self.file_of(stands.rpartition(".")[0]) if stands else file
        last_name = last(stands) if stands else name
        if other is None:
            return
        yield from (one for one in self.named(last_name) if one.file is other and one.cls is None)
        cls = other.classes.get(last_name)
        if cls is not None:  # whoever makes an instance calls what Python calls of it
            yield from (one for key, one in cls.methods.items() if key.startswith("__"))

    def _by_attribute(self, file: File, name: str) -> Iterator[Function]:
        """Methods of that name of any class; functions of modules that the file imports."""
        for one in self.named(name):
            if one.cls is not None or one.file.module in file.names.imported or one.file is file:
                yield one
        cls = self._classes.get(name)
        if cls is not None:
            yield from (one for key, one in cls.methods.items() if key.startswith("__"))

    # -- classes -----------------------------------------------------------------------------------------------------

    def shows_address(
        self, cls: str, *, how: Literal["repr", "str"], below: frozenset[str] = frozenset()
    ) -> bool:
        """Whether an instance of the class is shown with its address: it and its bases, all known, say nothing else.

        ``below``: classes that derive from it; a base of the same name is a class of another module, and not known.
        """
        found = self._classes.get(cls)
        if found is None or cls in below:
            return cls == "object"
        wanted = _REPRS if how == "str" else frozenset(["__repr__"])
        if found.shown & wanted or not found.plain_bases:
            return False
        bases = [last(found.file.names.full(base)) for base in found.node.bases]
        known = below | {cls}
        return all(
            base in _PLAIN_BASES or self.shows_address(base, how=how, below=known) for base in bases if base
        )


def is_workflow(file: File) -> bool:
    """Whether the file makes a workflow of agentloom."""
    calls = (node for node in ast.walk(file.source.tree) if isinstance(node, ast.Call))
    return any(file.names.full(call.func) == "agentloom.Workflow" for call in calls)


def _file(source: Source) -> File:
    module, package = _module(source.path)
    file = File(source, Names(source.tree, package), module)
    _collect(file, source.tree.body, "", None)
    return file


def _module(path: str) -> tuple[str, str]:
    """The dotted name that a file is imported as, and that of its package."""
    package = package_of(os.path.abspath(path))
    stem = os.path.basename(path).removesuffix(".py")
    inner = [] if stem == "__init__" else [stem]
    return ".".join([*([package] if package else []), *inner]), package


def _collect(file: File, body: Iterable[ast.AST], prefix: str, cls: Class | None) -> None:
    for node in body:
        if isinstance(node, FunctionNode):
            function = Function(file, node, prefix + node.name, cls)
            file.functions.append(function)
            if cls is not None:
                cls.methods[node.name] = function
            _collect(file, node.body, f"{prefix}{node.name}.", None)
        elif isinstance(node, ast.ClassDef):
            made = Class(file, node, prefix + node.name)
            _collect(file, node.body, f"{prefix}{node.name}.", made)
            assigned = {
                one.id
                for stmt in node.body
                if isinstance(stmt, ast.Assign)
                for one in stmt.targets
                if isinstance(one, ast.Name)
            }
            made.shown = frozenset(_REPRS & (made.methods.keys() | assigned))
            made.plain_bases = _plain(node)
            file.classes.setdefault(node.name, made)
        else:
            _collect(file, ast.iter_child_nodes(node), prefix, cls)


def _plain(node: ast.ClassDef) -> bool:
    """Whether nothing in the head of the class (a decorator, a metaclass) may give it a ``__repr__``."""
    return not node.decorator_list and not node.keywords


def _plainly(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that are run when a module is: all but the bodies of functions."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _plainly(node.body)
        elif not _defines(node):
            yield node


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, FunctionNode | ast.ClassDef)
