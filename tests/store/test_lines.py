"""Where entries end, and what of a trace can be gone on with."""

from __future__ import annotations

import pytest

from agentloom.errors import FormatError, IntegrityError, StoreFailed, UnsupportedVersion
from agentloom.format.journal import Journal
from agentloom.store.lines import append_ends, checked, recovered, whole_lines
from agentloom.testing.store_contract import Sample


def parts() -> tuple[Sample, list[bytes]]:
    sample = Sample()
    return sample, [sample.start(), *sample.call(), *sample.call("model", "gpt-4o"), sample.end()]


def test_entries_end_where_appends_did() -> None:
    _, appends = parts()
    data = b"".join(appends)
    ends = [sum(map(len, appends[: count + 1])) for count in range(1, len(appends))]
    assert list(append_ends(data)) == ends
    assert list(append_ends(b"")) == list(append_ends(b"no newline")) == []


def test_whole_lines() -> None:
    assert whole_lines(b"a\nb\n") == b"a\nb\n"
    assert whole_lines(b"a\nb") == b"a\n"
    assert whole_lines(b"a") == b""


def test_cut_anywhere_only_the_unacknowledged_goes() -> None:
    sample, appends = parts()
    data = b"".join(appends)
    ends = [sum(map(len, appends[:count])) for count in range(len(appends) + 1)]
    for length in range(len(appends[0]), len(data) + 1):
        kept = recovered(data[:length], sample.run)
        assert kept == max(end for end in ends if end <= length), length
        Journal.parse(data[:kept])


def test_cut_inside_the_first_append_there_is_nothing_to_go_on_with() -> None:
    sample, appends = parts()
    for length in range(len(appends[0])):
        with pytest.raises(StoreFailed, match="nothing to go on with"):
            recovered(appends[0][:length], sample.run)


def test_the_zeros_of_a_power_cut_are_torn_too() -> None:
    sample, appends = parts()
    data = b"".join(appends[:-1])
    assert recovered(data + appends[-1][:20] + bytes(500), sample.run) == len(data)


def test_every_flipped_byte_before_the_last_append_is_refused() -> None:
    sample, appends = parts()
    data = b"".join(appends)
    last = len(data) - len(appends[-1])
    for at in range(0, last, 7):
        broken = bytearray(data)
        broken[at] ^= 0x01
        with pytest.raises((FormatError, IntegrityError, StoreFailed)) as caught:
            recovered(bytes(broken), sample.run)
        if not isinstance(caught.value, StoreFailed):
            assert caught.value.fields["line"] is not None, at


def test_another_run_is_refused() -> None:
    with pytest.raises(StoreFailed, match="import the file"):
        recovered(Sample(2).whole(), Sample(1).run)


def test_what_is_checked_before_it_is_taken_in() -> None:
    sample, appends = parts()
    data = b"".join(appends)
    assert checked(data) == (sample.run, data)
    assert checked(data[:-1]) == (sample.run, b"".join(appends[:-1]))
    newer = data.replace(b'"version":"1.0"', b'"version":"2.0"')
    with pytest.raises(UnsupportedVersion):
        checked(newer)
    lines = data.splitlines(keepends=True)
    start_blob = lines[1]
    with pytest.raises(IntegrityError) as caught:
        checked(data.replace(start_blob, b""))
    assert (caught.value.code, caught.value.line) == ("blob.missing", 1)
    late_blob = next(line for line in lines[10:] if line.startswith(b'{"blob":'))
    assert checked(data.replace(late_blob, b""))[0] == sample.run  # lost, but the rest is worth having
    with pytest.raises(IntegrityError):
        recovered(data.replace(late_blob, b""), sample.run)
