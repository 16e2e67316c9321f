"""Bugs to be put into copies of the product: each an edit of one file, and the proof that should find it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BUGS", "PROOFS", "Bug"]

#: The proofs, by short names: arguments for pytest. The quickest that can find most comes first.
PROOFS: dict[str, tuple[str, ...]] = {
    "mixed": ("tests/simulation/test_mixed_programs.py",),
    "others": ("tests/simulation/test_mixed_programs.py", "-k", "another_program"),
    "fields": ("tests/simulation/test_every_field.py",),
    "outliving": ("tests/simulation/test_outliving.py", "-k", "test_histories"),
    "programs": (
        "tests/simulation/test_engine_programs.py",
        "-k",
        "test_programs_replay_equal_from_their_traces",
    ),
    "runs": ("tests/faults/test_whole_runs.py",),
    "faults": ("tests/faults/test_store_faults.py",),
    "machine": ("tests/store/test_state_machine.py",),
    "contract": ("tests/store/test_local.py", "tests/store/test_memory.py"),
    "appender": ("tests/store/test_appender.py",),
    "checkers": ("tests/fuzz/test_mutations.py", "-k", "agree"),
    "damage": ("tests/fuzz/test_mutations.py", "-k", "reach or parse"),
    "unfolding": ("tests/fuzz/test_hostile.py", "-k", "test_every_reader and empty_laughs"),
    "seals": ("tests/fuzz/test_hostile.py", "-k", "test_every_reader and many_good_seals"),
    "vectors": ("tests/spec/test_vectors.py",),
    "golden": ("tests/golden",),
    "lists": ("tests/format/test_blobs.py",),
    "captures": ("tests/format/test_captures_property.py",),
    "secrets": ("tests/runtime/test_profiles.py",),
    "verdicts": ("tests/bad_input/test_verdicts.py",),
}


@dataclass(frozen=True, slots=True)
class Bug:
    """``old`` stands once in ``file`` (below ``src/agentloom``); with ``new`` in its place it goes as ``name``
    says. ``proof``: the name of the one that should find it."""

    name: str
    file: str
    old: str
    new: str
    proof: str


BUGS: tuple[Bug, ...] = (
    Bug(
        "chunks are not written before the next request",
        "runtime/ledger.py",
        "    def request(self, call: Call) -> None:\n        if self._chunks:\n            self._settle()\n",
        "    def request(self, call: Call) -> None:\n",
        "mixed",
    ),
    Bug(
        "chunks that wait are forgotten at the end",
        "runtime/ledger.py",
        "    def end(self, status: str, tree: Tree, totals: Mapping[str, Tree]) -> None:\n        if self._chunks:\n"
        "            self._settle()\n",
        "    def end(self, status: str, tree: Tree, totals: Mapping[str, Tree]) -> None:\n",
        "mixed",
    ),
    Bug(
        "an outcome is written after it was delivered",
        "runtime/ledger.py",
        "        self._append(pending + journal.entry_of(kind, text, at=self._clock()))\n",
        "        held = getattr(self, 'held', b'') + pending + journal.entry_of(kind, text, at=self._clock())\n"
        "        self.held = held if kind == 'outcome' else b''\n"
        "        if kind != 'outcome':\n"
        "            self._append(held)\n",
        "runs",
    ),
    Bug(
        "a request is written after its effect",
        "runtime/ledger.py",
        "        self._append(pending + journal.entry_of(kind, text, at=self._clock()))\n",
        "        held = getattr(self, 'held', b'') + pending + journal.entry_of(kind, text, at=self._clock())\n"
        "        self.held = held if kind == 'request' else b''\n"
        "        if kind != 'request':\n"
        "            self._append(held)\n",
        "runs",
    ),
    Bug(
        "chunks of two streams are replayed stream by stream",
        "replay/recording.py",
        "        self._chunks.sort(key=lambda step: step.d or 0)\n",
        "",
        "programs",
    ),
    Bug(
        "two deliveries are swapped on replay",
        "replay/recording.py",
        "        handlers.clear()",
        "        kinds = [step.kind for step in out.steps]\n"
        "        for at in range(len(kinds) - 1):\n"
        "            if kinds[at : at + 2] == ['outcome', 'outcome']:\n"
        "                out.steps[at : at + 2] = out.steps[at + 1], out.steps[at]\n"
        "                break\n"
        "        handlers.clear()",
        "programs",
    ),
    Bug(
        "the key forgets a field",
        "format/keys.py",
        "        hashed: Hash = self._inner.copy()\n",
        "        hashed: Hash = self._inner.copy()\n"
        "        fields = {field: fields[field] for field in fields if field != 'temperature'}\n",
        "fields",
    ),
    Bug(
        "the key of a history takes only what was added",
        "format/keys.py",
        "            hashed.update(text)\n        hashed.update(canonical(history.items)[1:-1])\n",
        "            hashed.update(text)\n        hashed.update(canonical(history.items[-1:])[1:-1])\n",
        "captures",
    ),
    Bug(
        "a history that was edited in place is taken for the old one",
        "format/captures.py",
        "            if keep <= len(value) and known.marks.begin(value):\n",
        "            if keep <= len(value):\n",
        "mixed",
    ),
    Bug(
        "the agent gets what the tool keeps, not what was written",
        "runtime/engine.py",
        '        return Delivery(call, "outcome", tree if arrival.plain else decode(tree, self.types))\n',
        "        given = tree if arrival.recorded else arrival.value\n"
        '        return Delivery(call, "outcome", given)\n',
        "mixed",
    ),
    Bug(
        "a cancelled call is not written down",
        "runtime/boundary.py",
        '    except asyncio.CancelledError:\n        session.engine.end_by_agent(call, "cancelled")\n        raise\n',
        "    except asyncio.CancelledError:\n        raise\n",
        "mixed",
    ),
    Bug(
        "a stream that was left is not written down",
        "runtime/boundary.py",
        '                self._scope.session.engine.end_by_agent(self.call, "closed")\n\n    def __enter__',
        "                pass\n\n    def __enter__",
        "mixed",
    ),
    Bug(
        "the virtual clock runs on by itself",
        "runtime/engine.py",
        "        self.deliveries += 1\n",
        "        self.deliveries += 1\n        self.vt += 1\n",
        "mixed",
    ),
    Bug(
        "the second child of one name has the place of the first",
        "runtime/scope.py",
        "        self._children[name] = index + 1\n",
        "        self._children[name] = index\n",
        "mixed",
    ),
    Bug(
        "attempts are not counted",
        "runtime/scope.py",
        "        attempt = self._made[logical] = self._made.get(logical, 0) + 1\n",
        "        attempt = self._made[logical] = 1\n",
        "mixed",
    ),
    Bug(
        "of timers due at once only the first fires",
        "runtime/loop.py",
        "        while self.next_timer() == deadline:\n",
        "        if self.next_timer() == deadline:\n",
        "loop",
    ),
    Bug(
        "the sets of tasks that asyncio walks are in the order of addresses",
        "runtime/loop_tasks.py",
        '    def __hash__(self) -> int:\n        """The number of this task;',
        '    def _hash(self) -> int:\n        """The number of this task;',
        "programs",
    ),
    Bug(
        "a list keeps one item too few of the list that it extends",
        "format/payloads.py",
        "            items[keep:] = cast",
        "            items[keep - 1 :] = cast",
        "lists",
    ),
    Bug(
        "`prev` is not compared",
        "format/rules.py",
        '        if entry.get("prev") != self.prev:\n',
        "        if self.seq < 0:\n",
        "vectors",
    ),
    Bug(
        "the id of a payload is not compared",
        "format/lines.py",
        "    if blob_id(binascii.unhexlify(salt), form, covered) != blob:\n",
        "    if len(salt) != 32:\n",
        "vectors",
    ),
    Bug(
        "a payload unfolds without bound",
        "format/payloads.py",
        "        if size > self._most:\n",
        "        if size < 0:\n",
        "unfolding",
    ),
    Bug(
        "the second seal is computed from the start",
        "format/rules.py",
        "        for digest in self.digests[self._tree.count :]:\n",
        "        self._tree = merkle.Tree()\n        for digest in self.digests:\n",
        "seals",
    ),
    Bug(
        "a retract leaves outcomes behind",
        "format/rules.py",
        "                self._calls[call] = (self._calls[call][0], -1)\n",
        "                pass\n",
        "vectors",
    ),
    Bug(
        "a credential in a header is written",
        "runtime/profiles.py",
        "    return text not in _OPEN_HEADERS and _SECRET_HEADER.search(text) is not None\n",
        "    return text not in _OPEN_HEADERS and _SECRET_HEADER.match(text) is not None\n",
        "secrets",
    ),
    Bug(
        "a full disk raises what an agent swallows",
        "runtime/engine.py",
        "    if isinstance(failure, Exception):\n        raise Stopped(",
        "    if isinstance(failure, ControlFlow):\n        raise Stopped(",
        "runs",
    ),
    Bug(
        "half an entry stays in the file when a write fails",
        "store/appender.py",
        "            self._system.ftruncate(self._fd, self._end)\n",
        "            pass\n",
        "runs",
    ),
    Bug(
        "payloads without their entry stay when a run is reopened",
        "format/scanning.py",
        "                whole = offset\n",
        "                pass\n",
        "vectors",
    ),
    Bug(
        "a writer goes on after a write that failed",
        "store/appender.py",
        "        self._pending, self._write = None, self._refuse\n        failure =",
        "        self._pending = None\n        failure =",
        "appender",
    ),
    Bug(
        "two writers may have one run",
        "store/osfile.py",
        "        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)\n",
        "        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)\n",
        "contract",
    ),
    Bug(
        "a divergence is an exception like any other",
        "errors.py",
        "class Diverged(ControlFlow):",
        "class Diverged(LoomError):",
        "others",
    ),
    Bug(
        "a mapping loses its order",
        "format/blobs.py",
        '        known = sha256(b"json" + text).digest()\n        found',
        "        tree = dict(sorted(tree.items())) if type(tree) is dict else tree\n"
        '        text = text_of(tree)\n        known = sha256(b"json" + text).digest()\n        found',
        "lists",
    ),
    Bug(
        "the names of traces are not synced",
        "store/local.py",
        "        sync_folder(self._system, self._runs)\n\n    def _folder",
        "        pass\n\n    def _folder",
        "outliving",
    ),
    Bug(
        "entries are not synced",
        "store/appender.py",
        "                write_all(self._system, self._fd, data[done:])\n"
        "            if self._power:\n"
        "                self._system.fdatasync(self._fd)\n"
        "        except OSError as error:\n"
        "            raise self._undo(error) from error\n"
        "        end = self._end + len(data)\n"
        "        # No call",
        "                write_all(self._system, self._fd, data[done:])\n"
        "        except OSError as error:\n"
        "            raise self._undo(error) from error\n"
        "        end = self._end + len(data)\n"
        "        # No call",
        "outliving",
    ),
    Bug(
        "several processes write one run",
        "store/lease.py",
        "            return system.flock(fd)\n",
        "            return True\n",
        "outliving",
    ),
    Bug(
        "what was said is lost where the process dies before its outcome",
        "replay/resuming.py",
        "    void = _said_alone(recording)\n",
        "    void: int | None = None\n",
        "outliving",
    ),
    Bug(
        "a message is taken twice",
        "replay/resuming.py",
        '    taken = [str(entry["mail"]) for entry in recording.said if "mail" in entry]\n',
        "    taken: list[str] = []\n",
        "outliving",
    ),
    Bug(
        "a call in doubt is performed again",
        "replay/doubt.py",
        '        return "again"\n    return "ask"\n',
        '        return "again"\n    return "again"\n',
        "outliving",
    ),
    Bug(
        "what goes on is said before each entry",
        "replay/frontier.py",
        "        payloads, self._payloads = self._payloads, None\n",
        "        payloads = self._payloads\n",
        "outliving",
    ),
    Bug(
        "the epoch stays",
        "replay/resuming.py",
        "        recording.epoch + 1,\n",
        "        recording.epoch,\n",
        "outliving",
    ),
    Bug(
        "delivery numbers begin anew behind the frontier",
        "replay/frontier.py",
        "        engine.deliveries, reached = recording.reached\n",
        "        engine.deliveries, reached = 0, recording.reached[1]\n",
        "outliving",
    ),
    Bug(
        "nobody is told that a call waits",
        "runtime/engine.py",
        "            if spec.outside is not None and self.suspends:\n"
        "                self.suspend(call, spec.outside)\n",
        "            if spec.outside is not None:\n                call.ask = str(call.index)\n",
        "outliving",
    ),
    Bug(
        "the answer to another question is taken",
        "runtime/waits.py",
        '                fits = letter.kind == "answer" and letter.key == call.ask\n',
        '                fits = letter.kind == "answer"\n',
        "outliving",
    ),
    Bug(
        "a question of before is asked under another id",
        "replay/frontier.py",
        '        if recorded.ask is not None and recorded.ask["ask"] not in answered:\n',
        "        if recorded.ask is not None and not answered and False:\n",
        "outliving",
    ),
    Bug(
        "a call that did not happen waits for another answer",
        "runtime/live_waits.py",
        "                self._say(arrival)\n"
        "                call.spec = replace(call.spec, outside=None)  # it waits for nobody any more\n"
        "                begin()\n",
        "                self._say(arrival)\n",
        "outliving",
    ),
    Bug(
        "time stands still while nobody writes the run",
        "replay/resuming.py",
        "    live.goes_on_at(max(now, session.engine.vt))\n",
        "    live.goes_on_at(session.engine.vt)\n",
        "outliving",
    ),
    Bug(
        "mail that cannot be read is the end of the run",
        "runtime/driver_async.py",
        "                except (ControlFlow, StoreFailed) as failure:\n"
        "                    engine.fail(failure)",
        "                except ControlFlow as failure:\n                    engine.fail(failure)",
        "outliving",
    ),
)
PROOFS["loop"] = ("tests/runtime/test_loop_timers.py",)
