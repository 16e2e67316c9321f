"""A workflow as a drawing: text for Mermaid and for Graphviz (DOT), of the graph alone or of the way a run went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentloom.api.workflow_graph import Graph
from agentloom.api.workflow_steps import Step
from agentloom.api.workflow_taken import Taken
from agentloom.errors import WorkflowError

__all__ = ["draw"]

_INPUT = "input"


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    lines: tuple[str, ...]
    shape: str
    look: str | None


@dataclass(frozen=True, slots=True)
class _Edge:
    start: str
    end: str
    label: str
    look: str  # plain, back (a way back), taken, not taken, back taken


def draw(graph: Graph, format: str, taken: Taken | None) -> str:  # noqa: A002 - the word of the public method
    """The text, ending in a newline. Raises ``WorkflowError`` for a format that is none."""
    nodes, edges = list(_nodes(graph, taken)), list(_edges(graph, taken))
    if format == "mermaid":
        return "\n".join(_mermaid(nodes, edges)) + "\n"
    if format == "dot":
        return "\n".join(_dot(nodes, edges)) + "\n"
    raise WorkflowError(f"a workflow is drawn as mermaid or dot, not as {format!r}")


# -- what is drawn -------------------------------------------------------------------------------------------------


def _nodes(graph: Graph, taken: Taken | None) -> Iterator[_Node]:
    for name, step in graph.steps.items():
        lines = [name, *_details(step)]
        if taken is not None and (times := _times(name, taken)):
            lines.append(times)
        yield _Node(name, tuple(lines), _shape(step, graph), None if taken is None else _look(name, taken))


def _details(step: Step) -> Iterator[str]:
    kind = f"verify, {step.kind}" if step.verify else step.kind
    yield f"{kind} {_what(step)}".rstrip()
    if step.each is not None:
        yield f"for each of {step.each}" if isinstance(step.each, str) else "for each item"
    if step.when is not None:
        yield "only when"


def _what(step: Step) -> str:
    if step.kind == "model":
        return ", else ".join(step.models)
    name = str(getattr(step.target, "name", getattr(step.target, "__name__", "")))
    return "" if name in (step.name, "<lambda>") else name


def _shape(step: Step, graph: Graph) -> str:
    if step.verify:
        return "verify"
    if step.kind == "fn" and (step.loop or len(graph.successors[step.name]) > 1):
        return "choice"
    return step.kind


def _look(name: str, taken: Taken) -> str:
    if name == taken.failed:
        return "failed"
    if taken.visits[name]:
        return "ran"
    return "skipped" if taken.skipped[name] else "nottaken"


def _times(name: str, taken: Taken) -> str:
    ran, skipped = taken.visits[name], taken.skipped[name]
    parts = [f"ran {ran} times" if ran > 1 else ""]
    parts.append("skipped" if skipped == 1 else f"skipped {skipped} times" if skipped else "")
    parts.append("failed" if name == taken.failed else "")
    if not ran and not skipped:
        parts.append("not reached")
    return ", ".join(part for part in parts if part)


def _edges(graph: Graph, taken: Taken | None) -> Iterator[_Edge]:
    drawn: set[tuple[str, str]] = set()
    for name, step in graph.steps.items():
        for earlier in step.after or (_INPUT,):
            went = taken is not None and (
                taken.reached(name) if earlier == _INPUT else taken.went(earlier, name)
            )
            yield _Edge(earlier, name, "", "plain" if taken is None else "taken" if went else "not taken")
            drawn.add((earlier, name))
    for name, step in graph.steps.items():
        for target, bound in step.loop.items():
            times = 0 if taken is None else taken.choices.get((name, target), 0)
            label = f"at most {bound}" if taken is None else f"{times} of {bound}"
            yield _Edge(name, target, label, "back taken" if times else "back")
            drawn.add((name, target))
    for name, target in taken.choices if taken is not None else ():
        if (name, target) not in drawn:
            yield _Edge(name, target, "chosen", "taken")


# -- Mermaid -------------------------------------------------------------------------------------------------------

_MERMAID_SHAPES = {
    "model": ("[", "]"),
    "fn": ("(", ")"),
    "choice": ("{", "}"),
    "tool": ("[/", "/]"),
    "agent": ("([", "])"),
    "workflow": ("[[", "]]"),
    "verify": ("{{", "}}"),
}
_MERMAID_EDGES = {
    "plain": ("-->", "-->"),
    "taken": ("==>", "==>"),
    "not taken": ("-.->", "-.->"),
    "back": ("-.->", "-. {} .->"),
    "back taken": ("==>", "== {} ==>"),
}
_MERMAID_LOOKS = {
    "ran": "fill:#e6f4ea,stroke:#188038,stroke-width:2px,color:#000",
    "failed": "fill:#fce8e6,stroke:#c5221f,stroke-width:3px,color:#000",
    "skipped": "fill:#fef7e0,stroke:#b06000,stroke-dasharray:4 3,color:#000",
    "nottaken": "fill:#f1f3f4,stroke:#9aa0a6,stroke-dasharray:4 3,color:#5f6368",
}
_MERMAID_CODES = {char: f"#{ord(char)};" for char in '"#<>&`\\{}[]()|;'} | {"\n": " ", "\r": " "}


def _mermaid(nodes: list[_Node], edges: list[_Edge]) -> Iterator[str]:
    ids = {_INPUT: _INPUT, **{node.name: f"s{number}" for number, node in enumerate(nodes)}}
    yield "flowchart TD"
    yield "    input((input))"
    for node in nodes:
        left, right = _MERMAID_SHAPES[node.shape]
        label = "<br/>".join(_mermaid_text(line) for line in node.lines)
        yield f'    {ids[node.name]}{left}"{label}"{right}'
    for edge in edges:
        bare, labelled = _MERMAID_EDGES[edge.look]
        if edge.label:
            arrow = (
                labelled.format(f'"{_mermaid_text(edge.label)}"')
                if "{}" in labelled
                else f"{bare}|{edge.label}|"
            )
        else:
            arrow = bare
        yield f"    {ids[edge.start]} {arrow} {ids[edge.end]}"
    for look, style in _MERMAID_LOOKS.items():
        named = [ids[node.name] for node in nodes if node.look == look]
        if named:
            yield f"    classDef {look} {style}"
            yield f"    class {','.join(named)} {look}"


def _mermaid_text(text: str) -> str:
    return "".join(_MERMAID_CODES.get(char, char) for char in text)


# -- Graphviz ------------------------------------------------------------------------------------------------------

_DOT_SHAPES = {
    "model": "box",
    "fn": "ellipse",
    "choice": "diamond",
    "tool": "parallelogram",
    "agent": "hexagon",
    "workflow": "box3d",
    "verify": "octagon",
}
_DOT_EDGES = {
    "plain": "",
    "taken": "penwidth=2, color=darkgreen",
    "not taken": "style=dashed, color=gray",
    "back": "style=dashed, constraint=false",
    "back taken": "penwidth=2, color=darkgreen, constraint=false",
}
_DOT_LOOKS = {
    "ran": "color=darkgreen, penwidth=2",
    "failed": "color=red, penwidth=3",
    "skipped": "color=orange, style=dashed",
    "nottaken": "color=gray, fontcolor=gray, style=dashed",
}


def _dot(nodes: list[_Node], edges: list[_Edge]) -> Iterator[str]:
    yield "digraph {"
    yield "    input [shape=circle];"
    for node in nodes:
        facts = [f"label={_dot_text(node.lines)}", f"shape={_DOT_SHAPES[node.shape]}"]
        if node.look is not None:
            facts.append(_DOT_LOOKS[node.look])
        yield f"    {_dot_text((node.name,))} [{', '.join(facts)}];"
    for edge in edges:
        facts = [f"label={_dot_text((edge.label,))}"] if edge.label else []
        facts += [_DOT_EDGES[edge.look]] if _DOT_EDGES[edge.look] else []
        yield f"    {_dot_id(edge.start)} -> {_dot_id(edge.end)}" + (
            f" [{', '.join(facts)}];" if facts else ";"
        )
    yield "}"


def _dot_id(name: str) -> str:
    return _INPUT if name == _INPUT else _dot_text((name,))


def _dot_text(lines: tuple[str, ...]) -> str:
    escaped = (
        line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ") for line in lines
    )
    return '"' + "\\n".join(escaped) + '"'
