"""Where a value leaves the agent's own code: calls of hosts, models and frameworks, prompts, messages and outputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from agentloom.cli.checks.flow.frame import Frame, text
from agentloom.cli.checks.flow.names import last
from agentloom.cli.checks.flow.values import SHY, Value

__all__ = ["PROMPTS", "Sinks", "is_messages"]

_HOST = re.compile(
    r"agentloom(\.sync)?\.(model|http|ask|signal|step|retrieve|note|flag|render|sleep|memory\.(put|get|search))"
)
_SDK = re.compile(
    r".*\b(completions|responses|messages|embeddings|images|models|chat|converse|generations)"
    r"\.(create|parse|stream|generate_content|generate_content_stream|complete|send_message|generate)"
)
_RUN = frozenset(
    """run run_sync run_async run_stream run_streamed invoke ainvoke stream astream kickoff akickoff predict apredict
    complete acomplete chat achat generate agenerate query aquery batch abatch send_message generate_content iter
    converse prompt completion acompletion stream_chat astream_chat""".split()
)
_RUNNERS = re.compile(
    r"(?i)(^|[._])\w*(agent|runner|chain|graph|workflow|crew|llm|model|engine|assistant|team|swarm|bot|client)s?(\(\))?$"
)
_HANDED = frozenset(["to_thread", "run_in_executor", "submit"])
"""Functions that call the tool that they are given."""
_PLAIN_CALLS = frozenset(
    ["litellm.completion", "litellm.acompletion", "any_llm.completion", "any_llm.acompletion"]
)
PROMPTS = frozenset(
    """instructions system_prompt system prompt backstory goal messages system_message user_prompt developer_message
    system_instruction template""".split()
)
"""Keywords that take what a model reads, of whatever is called."""
_TEXTS = PROMPTS | frozenset(
    "content contents input question query text task description context model".split()
)
_MESSAGES = re.compile(r"(?i)(^|[._])(\w*messages|\w+_history|\w*prompts?|conversation|transcript)$")


def is_messages(path: str) -> bool:
    """Whether a variable is named as a list of messages or a prompt."""
    return _MESSAGES.search(path) is not None


class Sinks(Frame):
    """A frame that knows where values go."""

    def is_host(self, call: ast.Call, full: str) -> bool:
        """Whether a call crosses the boundary of the run: what it gets is recorded, and so is what it gives."""
        if _HOST.fullmatch(full) or full in _PLAIN_CALLS or _SDK.fullmatch(full):
            return True
        function = self.program.function(self.file, full)
        if function is not None and function.tool:
            return True
        name = last(full)
        if name in _HANDED and any(self._is_tool(self.names.full(arg)) for arg in call.args):
            return True
        if name in _RUN and isinstance(call.func, ast.Attribute):
            receiver = full.rpartition(".")[0]
            head = full.partition(".")[0]
            foreign = self.names.stands(head) in ("subprocess", "asyncio", "uvicorn")
            return not foreign and _RUNNERS.search(receiver) is not None
        return False

    def at_host(self, call: ast.Call, full: str, given: Iterable[tuple[str | None, Value]]) -> None:
        """Judge the arguments of a host call, and the order in which it is made."""
        self.host = True
        if not self.in_run:
            return
        where = f"in the arguments of {text(call.func)}(...) in line {call.lineno}"
        known = full.startswith("agentloom") or self._is_tool(full)
        for keyword, value in given:
            marks = value.strong()
            if not known and keyword is not None and keyword not in _TEXTS:
                marks = frozenset(mark for mark in marks if mark.rule not in SHY)
            self.emit(marks, where)
        self.emit(self.loops, f"and {text(call.func)}(...) in line {call.lineno} is called in that order")

    def at_prompt(self, call: ast.Call, given: Iterable[tuple[str | None, Value]]) -> None:
        """Judge the keywords of any call that take a prompt; at import too, for the run reads it."""
        for keyword, value in given:
            if keyword in PROMPTS:
                self.emit(value.strong(), f"in {text(call.func)}({keyword}=...) in line {call.lineno}")

    def at_messages(self, path: str, node: ast.AST, values: Iterable[Value]) -> None:
        """Judge what is put into a list of messages."""
        if self.in_run and is_messages(path):
            line = getattr(node, "lineno", 0)
            for value in values:
                self.emit(value.strong(), f"in {path} in line {line}")
            self.emit(self.loops, f"and {path} is extended in that order in line {line}")

    def at_output(self, value: Value, node: ast.AST) -> None:
        """Judge what an agent, a step or a prompt function returns."""
        function = self.function
        if function is None or not self.in_run:
            return
        line = getattr(node, "lineno", 0)
        if function.root:
            self.emit(value.strong(), f"in the output of {function.name}() in line {line}")
        elif function.prompt:
            self.emit(value.strong(), f"in the prompt that {function.name}() makes in line {line}")

    def at_print(self, call: ast.Call, given: Iterable[tuple[str | None, Value]]) -> None:
        """Judge what a script prints: its standard output is compared."""
        if not (self.in_run and self.is_script):
            return
        for keyword, value in given:
            if keyword is None:
                self.emit(value.strong(), f"in what line {call.lineno} prints")
        self.emit(self.loops, f"and line {call.lineno} prints in that order")

    def at_raise(self, value: Value, node: ast.AST) -> None:
        """Judge the text of an error: it is recorded, compared, and often shown to a model."""
        if self.in_run:
            marks = (mark for mark in value.strong() if mark.rule == "address")
            self.emit(marks, f"in the text of the error that line {getattr(node, 'lineno', 0)} raises")

    def _is_tool(self, full: str) -> bool:
        function = self.program.function(self.file, full)
        return function is not None and function.tool
