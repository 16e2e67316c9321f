"""Vectors that hold: what writers may write, and what is merely incomplete."""

from __future__ import annotations

import json
from typing import Any

from agentloom.format.merkle import Tree as Merkle
from agentloom.format.values import Tree
from spec.vector_maker import (
    START,
    Maker,
    Vector,
    edited,
    entry_line,
    finished,
    head_of,
    join,
    lines,
    number_of,
    rechained,
    small,
)
from spec.worked_example import data as worked_example


def vectors() -> list[Vector]:
    """All of them."""
    return [*_whole(), *_open(), *_heads(), *_later_kinds(), *_unknown(), *_erased()]


def _whole() -> list[Vector]:
    return [
        Vector("valid/minimal.loom", "a start entry and an end entry", Maker("minimal").start().end().data),
        Vector("valid/small.loom", "two model calls that share their history, and a tool call", finished()),
        Vector("valid/worked-example.loom", "the worked example of the specification", worked_example()),
        Vector("valid/values.loom", "every tag of a value", _values()),
        Vector("valid/parts.loom", "bytes and text in parts, a list in pieces", _parts()),
        Vector("valid/echoes.loom", "a result that comes back as a part and as JSON text", _echoes()),
        Vector("valid/stream.loom", "a stream, a timer, a cancellation, a turn, a state, marks", _stream()),
        Vector(
            "valid/rule.loom", "requests sorted by a changed profile, whose rule is written once", _rule()
        ),
        Vector("valid/decision.loom", "choices of steps; a name that looks like a blob id", _decision()),
        Vector(
            "valid/history.loom", "a history that grows, is edited, compacted and grows again", _history()
        ),
        Vector("valid/failed.loom", "a run that failed", _failed()),
        Vector(
            "valid/guarded.loom",
            "a run under a guard, with the environment variables that it read",
            _guarded(),
        ),
        Vector("valid/threads.loom", "a run that adopts threads, one of which starts another", _threads()),
        Vector(
            "valid/tools.loom",
            "a run whose user said what tools of frameworks do, and in which threads that sleep let others go on",
            _tools(),
        ),
        Vector("valid/ticks.loom", "time that went by without an event", _ticks()),
        Vector("valid/facts.loom", "facts of the process and the machine that a run asked for", _facts()),
        Vector(
            "valid/redacted.loom",
            "placeholders in the place of secrets, in text, base64 and an outcome",
            _redacted(),
        ),
    ]


def _values() -> bytes:
    values: dict[str, Tree] = {
        "plain": [
            None,
            True,
            False,
            0,
            -1,
            2**64 - 1,
            -(2**63),
            1.0,
            -0.0,
            1e16,
            5e-324,
            "",
            "\u2028\ud7ff\U0001f600",
        ],
        "int": {"$int": "1180591620717411303424"},
        "float": [{"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$float": "7ff8000000000001"}],
        "str": {"$str": "7aCA"},
        "bytes": [{"$bytes": "AAEC"}, {"$bytearray": ""}],
        "containers": [{"$tuple": [1, {"$set": [1, 2]}]}, {"$frozenset": []}],
        "map": {"$map": [["$ref", "0" * 64]]},
        "keys": {"$map": [[1, "a"], [{"$tuple": [1, 2]}, "b"]]},
        "not a tag": {"$ref": "0" * 64, "second": 1},
        "time": [
            {"$datetime": "2024-02-29T12:00:00.000001"},
            {"$datetime": {"at": "2024-10-27T02:30:00", "zone": "Europe/Berlin", "fold": 1}},
            {"$datetime": {"at": "2024-01-01T00:00:00", "offset": [0, 3600, 0]}},
            {"$date": "2024-02-29"},
            {"$time": "23:59:59"},
            {"$timedelta": [-1, 86399, 999999]},
        ],
        "numbers": [
            {"$decimal": "-0.10"},
            {"$fraction": [1, 3]},
            {"$complex": [1.0, -0.0]},
            {"$range": [0, 10, 3]},
        ],
        "uuid": {"$uuid": "12345678-1234-5678-1234-567812345678"},
        "path": {"$path": ["pure-posix", "/srv/orders"]},
        "obj": {"$obj": {"type": "shop:Order", "how": "dataclass", "data": {"id": 812}}},
        "error": {"$error": {"type": "builtins:ValueError", "args": ["x"], "attrs": {}, "message": "x"}},
    }
    maker = Maker("values").start()
    return maker.request("root/agent#0", "tool", "echo", values).outcome("root/agent#0", values).end().data


def _parts() -> bytes:
    maker = Maker("parts").start().request("root/agent#0", "tool", "draw", {"args": ["snow"]})
    first, second = maker.blobs.put_bytes(b"\x89PNG\r\n"), maker.blobs.put_bytes(b"\x00\xff" * 700)
    snow = maker.blobs.put_bytes("snow\u2603".encode()[:-1])
    rest = maker.blobs.put_bytes("snow\u2603".encode()[-1:])
    refs: list[Tree] = [{"$ref": first}, {"$ref": second}]
    picture: Tree = {"picture": {"$bytes": refs}, "text": {"$text": [{"$ref": snow}, {"$ref": rest}]}}
    base = maker.put([1, 2, 3])
    return (
        maker.outcome("root/agent#0", [picture, {"$ref": maker.put({"$list": [base, 2, ["three"]]})}])
        .end()
        .data
    )


def _echoes() -> bytes:
    rows: Tree = {"rows": [{"id": n, "name": f"order {n}"} for n in range(10)], "note": "caf\u00e9"}
    answer: Tree = {"content": "These are the orders. " * 12, "stop": "end"}
    maker = Maker("echoes").start()
    maker.request("root/agent#0", "tool", "orders", {"args": []}).outcome("root/agent#0", rows)
    maker.request("root/agent#1", "model", "m", {"messages": ["x" * 300, json.dumps(rows)]})
    maker.outcome("root/agent#1", answer)
    message: Tree = {"role": "assistant", "content": "These are the orders. " * 12}
    maker.request("root/agent#2", "model", "m", {"messages": ["x" * 300, json.dumps(rows), message]})
    return maker.outcome("root/agent#2", "done").end().data


def _stream() -> bytes:
    maker = Maker("stream").start()
    maker.request("root/agent#0", "model", "gpt-4o", {"model": "gpt-4o", "stream": True})
    maker.entry("timer", d=2, vt=5)
    maker.entry("chunks", call="root/agent#0", items=[[1, 1, 10], [3, 7, 20]], val=maker.put(["Re", "fund"]))
    maker.entry("outcome", call="root/agent#0", vt=9, status="closed")
    maker.entry("cancel", d=4, vt=10).entry("turn", d=5, vt=11)
    route: dict[str, Any] = {"call": "root/agent#1", "name": "route", "key": "0" * 32, "reads": ["intent"]}
    maker.entry("state", **route, val=maker.put("refund"))
    maker.entry("note", val=maker.put("looks right")).entry("flag").entry("tag", val=maker.put(["ticket-9"]))
    return maker.end(totals={"calls": 1, "deliveries": 5}).data


def _decision() -> bytes:
    maker = Maker("decision").start()
    lookalike = "a" * 64
    route: dict[str, Any] = {"call": "root/agent/route#1", "name": "route", "key": "0" * 32}
    maker.entry("state", **route, val=maker.put("human"), reads=[lookalike], goto=lookalike, others=["bot"])
    check: dict[str, Any] = {"call": "root/agent/check#1", "name": "check", "key": "1" * 32}
    maker.entry("state", **check, val=maker.put(7), reads=[], others=["route"], src="agent.py:9 check")
    return maker.end(totals={"calls": 0, "deliveries": 0}).data


def _rule() -> bytes:
    maker = Maker("rule").start()
    rule: Tree = {"base": "tool/1", "noted": ["args.request_id"], "normalise": {"args.text": "whitespace"}}
    for n, text in enumerate(("to  be\n", "or not")):
        call: dict[str, Any] = {"call": f"root/agent#{n}", "type": "tool", "name": "say"}
        req = maker.put({"args": {"text": text, "request_id": f"r-{n}"}})
        maker.entry(
            "request", **call, key=str(n) * 32, profile="tool/1+0c1d2e3f", rule=maker.put(rule), req=req
        )
        maker.outcome(f"root/agent#{n}", "ok")
    return maker.end().data


def _guarded() -> bytes:
    maker = Maker("guarded")
    policy: Tree = {"guard": "virtual", "entropy": "5a" * 32, "durability": "process"}
    clock: Tree = {"start": START, "resolution": 1, "monotonic": 7_000_000_000}
    maker.start(policy=maker.put(policy), clock=clock)
    first: Tree = {"LANG": "C.UTF-8", "DEBUG": None, "API_KEY": "[secret API_KEY]"}
    maker.request("root/agent#0", "tool", "say", {"args": ["x"]}, vars=maker.put(first))
    maker.outcome("root/agent#0", "ok")
    return maker.end(vars=maker.put({"=": ["LANG", "API_KEY", "HOME"], "HOME": "a-folder"})).data


def _threads() -> bytes:
    maker = Maker("threads")
    policy: Tree = {"guard": "virtual", "threads": "adopted", "entropy": "5a" * 32, "durability": "process"}
    maker.start(policy=maker.put(policy))
    calls = [f"root/agent/{path}#1" for path in ("thread[0]", "thread[1]", "thread[1]/thread[0]")]
    for number, call in enumerate(calls):
        maker.request(call, "tool", "say", {"args": [number]})
    maker.outcome(calls[2], "ok", d=1, vt=5)
    maker.entry("timer", d=2, vt=7)  # the time of a thread that waits is over
    maker.entry("turn", d=3, vt=7)  # a thread outside of the run did what one waited for
    maker.outcome(calls[0], "ok", d=4, vt=9)
    maker.outcome(calls[1], "ok", d=5, vt=9)
    return maker.end().data


def _tools() -> bytes:
    maker = Maker("tools")
    said: Tree = {"look": "read", "sum": "pure", "pay": "write", "research": "agent"}
    policy: Tree = {
        "guard": "virtual", "threads": "adopted", "yields": "sleep", "sockets": "passed", "draws": "shared",
        "entropy": "5a" * 32, "tools": said, "durability": "power", "on_store_failure": "closed",
    }  # fmt: skip
    maker.start(policy=maker.put(policy))
    maker.request("root/agent/thread[0]#1", "tool", "look", {"args": {"item": "fig"}}, effect="read")
    maker.outcome("root/agent/thread[0]#1", "ok", d=1, vt=5)
    maker.entry("timer", d=2, vt=5)  # a thread that slept for no time goes on
    return maker.end().data


def _ticks() -> bytes:
    maker = Maker("ticks")
    maker.start(policy=maker.put({"guard": "virtual", "entropy": "5a" * 32, "durability": "process"}))
    maker.entry("tick", d=1, vt=50_000_000, reads=3)  # before anything else
    maker.request("root/agent#0", "tool", "say", {"args": ["x"]})
    maker.entry("tick", d=2, vt=62_000_000, reads=1)  # another thread read the clock meanwhile
    maker.outcome("root/agent#0", "ok", d=3, vt=63_000_000)
    maker.entry("tick", d=4, vt=80_000_000, reads=900).entry("tick", d=5, vt=80_000_001, reads=0)
    return maker.end(totals={"calls": 1, "deliveries": 5}).data


def _facts() -> bytes:
    maker = Maker("facts")
    maker.start(policy=maker.put({"guard": "strict", "entropy": "5a" * 32, "durability": "process"}))
    load: Tree = {"is": {"$tuple": [0.5, 0.25, 0.125]}}
    first: Tree = {"=os.getcwd()": {"is": "/srv/desk"}, "=os.getloadavg()": load, "HOME": "/srv/a"}
    maker.request("root/agent#0", "tool", "say", {"args": ["x"]}, vars=maker.put(first))
    maker.outcome("root/agent#0", "ok")
    second: Tree = {
        "=os.getlogin()": {"error": "OSError", "errno": 6, "text": "No such device or address"},
        "=os.getcwd() 2": {"is": "/srv/desk/below"},
        "=platform.node()": {"is": "host"},
    }
    return maker.end(vars=maker.put(second)).data


def _redacted() -> bytes:
    maker = Maker("redacted")
    first: Tree = [{"n": 1, "kind": "environment", "name": "API_KEY", "place": "the code"}]
    maker.start(secrets=maker.put(first))
    request: dict[str, Tree] = {"args": ["Bearer __redacted_1__", {"$bytes": "X19yZWRhY3RlZF8xX18="}]}
    maker.request("root/agent#0", "tool", "say", request)
    second: Tree = [{"n": 2, "kind": "JWT", "place": "call 1"}]
    maker.outcome("root/agent#0", {"token": "__redacted_2__"}, secrets=maker.put(second))
    return maker.end().data


def _history() -> bytes:
    maker = Maker("history").start()
    messages: list[Tree] = [{"role": "system", "content": "x" * 300}]
    for turn in range(6):
        messages.append({"role": "user", "content": f"question {turn} " + "y" * 100})
        if turn == 3:
            messages[1] = {"role": "user", "content": "edited"}
        if turn == 4:
            messages = [{"role": "system", "content": "summary " + "z" * 300}, messages[-1]]
        call = f"root/agent#{turn}"
        maker.request(call, "model", "gpt-4o", {"model": "gpt-4o", "messages": list(messages)})
        answer: Tree = {"role": "assistant", "content": f"answer {turn} " + "w" * 120}
        messages.append(answer)
        maker.outcome(call, answer)
    return maker.end().data


def _failed() -> bytes:
    error: Tree = {"$error": {"type": "builtins:KeyError", "args": ["812"], "attrs": {}, "message": "'812'"}}
    maker = Maker("failed").start()
    maker.request("root/agent#0", "tool", "lookup_order", {"args": [812]}).outcome(
        "root/agent#0", error, "error"
    )
    return maker.entry("end", status="failed", err=maker.put(error)).data


def _open() -> list[Vector]:
    going = small().data
    loose = {"unreferenced": 1}
    whole = finished()
    end, last = entry_line(whole, "end"), len(lines(going))
    blank = join([*lines(whole)[:-1], b"\x00" * 64])
    lost = number_of(whole, lambda line: b'"order":812' in line)
    dropped = join([line for line in lines(whole) if line != lines(whole)[lost - 1]])
    extra = Maker("extra").start()
    extra.put({"nobody": "names this"})
    gap = small().entry("gap", why="store-failed").end().data
    return [
        Vector("valid/open.loom", "a run that goes on", going, "end.missing", last),
        Vector(
            "valid/in-doubt.loom",
            "stopped between request and outcome",
            _in_doubt(),
            "end.missing",
            len(lines(_in_doubt())),
        ),
        Vector(
            "valid/start-only.loom",
            "stopped after the start entry",
            Maker("only").start().data,
            "end.missing",
            1,
        ),
        Vector(
            "valid/torn-line.loom",
            "the last line without its end",
            whole[:-20],
            "tail.torn",
            last,
            more=loose,
        ),
        Vector(
            "valid/torn-newline.loom",
            "the last newline alone is lost",
            whole[:-1],
            "tail.torn",
            last,
            more=loose,
        ),
        Vector(
            "valid/torn-append.loom",
            "blobs without their entry",
            join(lines(whole)[: end - 1]),
            "tail.torn",
            last,
            more=loose,
        ),
        Vector(
            "valid/torn-zeros.loom",
            "the last line was never written, only its length",
            blank,
            "tail.torn",
            last,
            more=loose,
        ),
        Vector(
            "valid/missing-blob.loom",
            "a payload's line is gone",
            dropped,
            "blob.missing",
            entry_line(dropped, "outcome"),
            more={"missing": 1},
        ),
        Vector(
            "valid/unreferenced-blob.loom",
            "a payload that nothing names",
            extra.end().data,
            more={"unreferenced": 1},
        ),
        Vector("valid/gap.loom", "something was not recorded", gap, "gap.present", entry_line(gap, "gap")),
    ]


def _in_doubt() -> bytes:
    return (
        Maker("doubt").start().request("root/agent#0", "tool", "charge", {"args": [40]}, effect="write").data
    )


def _heads() -> list[Vector]:
    whole = finished()
    longer = small().end(totals={"calls": 3, "deliveries": 3}).entry("flag").data
    forged = rechained(whole, entry_line(whole, "outcome"), lambda entry: entry.update(vt=7))
    last = len(lines(whole))
    return [
        Vector("valid/head.loom", "with the head kept elsewhere", whole, head=head_of(whole), unaltered=True),
        Vector(
            "valid/head-of-prefix.loom",
            "with the head that it had before a flag was added",
            longer,
            head=head_of(whole),
            unaltered=True,
        ),
        Vector(
            "valid/forged-chain.loom",
            "one entry changed and the whole chain written anew: consistent, and not the head kept elsewhere",
            forged,
            "head.mismatch",
            last,
            complete=True,
            head=head_of(whole),
            unaltered=False,
        ),
    ]


def _later_kinds() -> list[Vector]:
    made = [
        ("suspended", "an open question, an answer, another writer", _suspended()),
        (
            "asked",
            "two questions, one with a default that held, and a message, with who said what when",
            _asked(),
        ),
        ("retracted", "a failed call taken off and tried again", _retracted()),
        (
            "retracted-outcome",
            "an outcome taken off, and another one for the same request",
            _answered_again(),
        ),
        ("retracted-end", "a failed run that went on: its end is void", _went_on()),
        ("sealed", "a Merkle root over the entries", _sealed()),
        (
            "index",
            "an index entry (its offset is a hint)",
            small().entry("index", offset=1, last=None).end().data,
        ),
        ("fork", "a fork of another run", _fork()),
        ("segments-joined", "two segments joined", _segments()),
    ]
    return [Vector(f"valid/{name}.loom", about, data) for name, about, data in made]


def _suspended() -> bytes:
    maker = small("suspended")
    maker.request("root/agent#3", "ask", "approve", {"question": "Refund $40?"})
    maker.entry("suspend", ask="approve-1", call="root/agent#3", val=maker.put({"choices": ["yes", "no"]}))
    maker.entry("answer", ask="approve-1", val=maker.put("yes"), who=maker.put("reviewer 7"))
    maker.entry("signal", name="cancelled", val=maker.put(None))
    return maker.entry("resume", epoch=2).outcome("root/agent#3", "yes").end().data


def _asked() -> bytes:
    maker = small("asked")
    who: Tree = {"at": 1_700_000_100_000_000_000, "via": "cli", "name": "reviewer 7"}
    args: Tree = {"order": 812, "amount": 40}
    approval: Tree = {
        "tool": "refund",
        "args": args,
        "schema": {"order": {"type": "int"}, "amount": {"type": "int"}},
    }
    maker.request("root/agent#3", "ask", "approve", {"approval": approval, "approver": ["finance"]})
    maker.entry(
        "suspend",
        ask="4",
        call="root/agent#3",
        val=maker.put({"question": "Refund $40?", "approval": approval, "approver": ["finance"]}),
        deadline=1_700_000_200_000_000_000,
        default=maker.put({"granted": False}),
    )
    maker.request("root/agent#4", "ask", "ask", {"question": "And the shipping?", "choices": ["yes", "no"]})
    maker.entry(
        "suspend",
        ask="5",
        call="root/agent#4",
        val=maker.put({"question": "And the shipping?", "choices": ["yes", "no"], "default": "no"}),
        deadline=1_700_000_050_000_000_000,
        default=maker.put("no"),
    )
    maker.request("root/agent#5", "signal", "returned", {"name": "returned"})
    maker.entry("suspend", ask="6", call="root/agent#5", val=maker.put({"name": "returned"}))
    maker.entry("resume", epoch=2).outcome("root/agent#4", "no")
    maker.entry("answer", ask="4", val=maker.put({"granted": True, "by": "reviewer 7"}), who=maker.put(who))
    maker.outcome("root/agent#3", {"granted": True, "by": "reviewer 7"})
    mail = "0f5e3ad1c2b34e5f8a9b0c1d2e3f4a5b"
    maker.entry("signal", name="returned", val=maker.put({"order": 812}), who=maker.put(who), mail=mail)
    return maker.outcome("root/agent#5", {"order": 812}).end().data


def _answered_again() -> bytes:
    maker = small("retracted-outcome")
    maker.request("root/agent#3", "tool", "refund", {"args": [812, 40]}, effect="write")
    maker.outcome("root/agent#3", "maybe")
    maker.entry("retract", **{"from": maker.journal.seq})
    maker.d -= 1
    return maker.outcome("root/agent#3", "yes").end().data


def _went_on() -> bytes:
    maker = small("retracted-end")
    maker.request("root/agent#3", "tool", "refund", {"args": [812, 40]}, effect="write")
    error: Tree = {"$error": {"type": "builtins:OSError", "args": [], "attrs": {}, "message": ""}}
    maker.outcome("root/agent#3", error, "error")
    failed = maker.journal.seq
    maker.end(status="failed").entry("retract", **{"from": failed})
    maker.d -= 1
    maker.entry("resume", epoch=2)
    return maker.outcome("root/agent#3", "ok").end().data


def _retracted() -> bytes:
    maker = small("retracted")
    maker.request("root/agent#3", "tool", "refund", {"args": [812, 40]}, effect="write")
    maker.outcome(
        "root/agent#3",
        {"$error": {"type": "builtins:OSError", "args": [], "attrs": {}, "message": ""}},
        "error",
    )
    maker.entry("retract", **{"from": maker.journal.seq - 1})
    maker.d -= 1
    maker.request("root/agent#3", "tool", "refund", {"args": [812, 40]}, effect="write")
    return maker.outcome("root/agent#3", "ok").end(totals={"calls": 4, "deliveries": 4}).data


def merkle_root(data: bytes) -> str:
    """The root over every entry of a file."""
    tree = Merkle()
    for number, line in enumerate(lines(data), 1):
        if line.startswith(b'{"seq":'):
            tree.add(head_of(data, number))
    return tree.root()


def _sealed() -> bytes:
    maker = small("sealed").end()
    return maker.entry("seal", count=maker.journal.seq + 1, root=merkle_root(maker.data)).data


def _fork() -> bytes:
    maker = Maker("fork")
    parent: Tree = {
        "run": "01hf7yat00abcdefghjkmnpqrs",
        "head": "ab" * 32,
        "at": 5,
        "changes": maker.put({"model": "x"}),
    }
    maker.start(parent=parent)
    maker.request("root/agent#0", "model", "x", {"model": "x"})
    return maker.outcome("root/agent#0", "hello", origin="live").end().data


def _segments() -> bytes:
    maker = small("segments")
    return (
        maker.entry("segment", n=1, format="loom", version="1.0", run="01hf7yat00abcdefghjkmnpqrs").end().data
    )


def _unknown() -> list[Vector]:
    whole = finished()
    minor = small("minor", version="1.7").end().data
    review = small()
    kind = review.entry("x-review", stars=5, val=review.put("good")).end().data
    member = rechained(
        whole, entry_line(whole, "request"), lambda entry: entry.update({"x-trace": [1, {"a": None}]})
    )
    spaced = edited(whole, len(lines(whole)), lambda line: line.replace(b',"kind"', b' ,\t"kind"'))
    digest = {"x-digest": "00" * 32}
    odd = rechained(whole, entry_line(whole, "end"), lambda entry: entry.update(digest))
    return [
        Vector("valid/newer-minor.loom", "a newer minor version", minor),
        Vector("valid/unknown-kind.loom", "an entry of a kind of somebody's own", kind),
        Vector("valid/unknown-member.loom", "members of somebody's own", member),
        Vector(
            "valid/other-spacing.loom",
            "an entry with other white space: its digest is over the bytes",
            spaced,
        ),
        Vector(
            "valid/looks-like-an-id.loom",
            "64 hex digits under an unknown name count as a payload's id",
            odd,
            "blob.missing",
            entry_line(odd, "end"),
            more={"missing": 1},
        ),
    ]


def _erased() -> list[Vector]:
    return [
        Vector("valid/erased.loom", "a payload and the nonce were erased", erase(), more={"erased": 2}),
        Vector(
            "valid/erased-input.loom", "the input was erased", erase("refund order 812"), more={"erased": 2}
        ),
    ]


def erase(mark: str = '"paid":true', *, nonce: bool = True, drop: bool = True, **changes: Any) -> bytes:
    """A finished run of which the payload that holds ``mark`` is erased."""
    maker = small("erased").end(totals={"calls": 3, "deliveries": 3})
    line = lines(maker.data)[number_of(maker.data, lambda line: mark.encode() in line) - 1]
    blobs: list[Tree] = [line[9:73].decode()]
    if nonce:
        blobs.append(maker.blobs.put_nonce(maker.nonce))
    reason = maker.put({"who": "privacy desk", "why": "request 17"})
    maker.entry("erase", **{"blobs": blobs, "val": reason} | changes)
    gone = tuple(f'{{"blob":"{blob}'.encode() for blob in blobs)
    return join([line for line in lines(maker.data) if not (drop and line.startswith(gone))])
