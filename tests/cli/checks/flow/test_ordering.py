"""What takes the order of a set, and what does not."""

from __future__ import annotations

import pytest

from tests.cli.checks.flow.agents import names, of_agent

TAKEN = [
    "search(list(tags))", "search([*tags])", "search(', '.join(tags))", "search(str(tags))", "search(f'{tags}')",
    "search('%s' % tags)", "search('{}'.format(tags))", "search([tag for tag in tags])", "search({t: 1 for t in tags})",
    "search(dict.fromkeys(tags))", "search(next(iter(tags)))", "search(tags.pop())", "search(tuple(tags)[0])",
    "search(list(tags | {given}))", "search(list(tags - {given}))", "search(list(tags.union([given])))",
    "search(list(frozenset(given)))", "search(list(map(str.upper, tags)))", "search(list(enumerate(tags)))",
    "first, *rest = tags; search(first)", "search(max(tags, key=len))", "search(sorted(tags, key=len))",
    "search(list({given: 1}.keys() & tags))", "out = ''\nfor t in tags: out += t\nsearch(out)",
    "out = []\nout.extend(tags)\nsearch(out)", "out = {}\nfor t in tags: out[t] = 1\nsearch(str(out))",
    "for t in tags:\n    if t: return t", "for t in tags: search(t)", "[search(t) for t in tags]", "search(repr(tags))",
    "search(list(set(given)))", "both = [tags, 1]\nsearch(str(both))",
]  # fmt: skip
CLEAN = [
    "search(sorted(tags))", "search(tags)", "search(given in tags)", "search(len(tags))",
    "search(sum(len(t) for t in tags))",
    "search(any(t for t in tags))", "search(min(tags))", "search(', '.join(sorted(tags)))", "search({t for t in tags})",
    "search(list({1, 2, 3}))", "search(sorted(t.lower() for t in tags))", "if given in tags: search(given)",
    "out = []\nfor t in tags: out.append(t)\nout.sort()\nsearch(out)", "search(list(given))", "search(tags == {given})",
    "total = 0\nfor t in tags: total += len(t)\nsearch(total)",
    "out = {}\nfor t in tags: out[t] = 1\nsearch(out[given])",
    "seen = set()\nfor t in tags: seen.add(t)\nsearch(sorted(seen))",
    "import json\nsearch(json.dumps({t: 1 for t in tags}, sort_keys=True))",
    "tags = sorted(tags)\nsearch(', '.join(tags))", "search(frozenset(tags))", "for t in sorted(tags): search(t)",
]  # fmt: skip


@pytest.mark.parametrize("body", TAKEN)
def test_an_order_that_is_taken_is_found_once(body: str) -> None:
    assert names(body) == ["set-order"]


@pytest.mark.parametrize("body", CLEAN)
def test_what_has_no_order_is_clean(body: str) -> None:
    assert names(body) == []


def test_sorting_a_list_does_not_sort_a_text_in_it() -> None:
    body = "parts = [', '.join(tags)]\nparts.sort()\nsearch(parts)"
    assert of_agent(body) == [(1, "set-order")]
    assert names("parts = [', '.join(tags)]\nfor part in parts: search(part)") == ["set-order"]


def test_floats_are_summed_in_an_order() -> None:
    assert names("prices = {float(x) for x in given}\nsearch(sum(prices))") == ["float-sum"]
    assert names("prices = {float(x) for x in given}\nimport math\nsearch(math.fsum(prices))") == []
    assert names("total = 0.0\nfor t in tags: total += float(t)\nsearch(total)") == ["float-sum"]
