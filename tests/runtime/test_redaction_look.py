"""What a first look decodes: stretches, none twice, within what ``Work`` allows."""

from __future__ import annotations

import base64
import gzip

import pytest

from agentloom.runtime.redaction_look import REACH, WINDOW, Stretches, Work


def _looked(data: bytes) -> tuple[Stretches, list[bytes]]:
    seen: list[bytes] = []

    def look(plain: bytes) -> bool:
        seen.append(plain)
        return b"wanted" in plain

    return Stretches(data, look), seen


def test_work_is_sixteen_times_the_payload_and_four_megabytes() -> None:
    work = Work(1000)
    assert work.take(16_000 + (4 << 20))
    assert not work.take(1)


@pytest.mark.parametrize("before", range(4))
def test_base64_is_decoded_from_a_place_in_its_run(before: int) -> None:
    coded = base64.b64encode(b"x" * 30 + b"wanted" + b"y" * 30)
    stretches, seen = _looked(b"!" * before + coded)
    assert stretches.base64(before + 40, 0)
    assert len(seen) == 1


def test_no_stretch_is_decoded_twice() -> None:
    coded = base64.b64encode(b"x" * 300)
    stretches, seen = _looked(coded)
    assert not any(stretches.base64(place, 0) for place in range(0, 400, 4))
    assert len(seen) == 1
    assert not stretches.base64(1, 0)  # another phase
    assert len(seen) == 2


def test_stretches_overlap_by_as_much_as_a_secret_takes() -> None:
    stretches, seen = _looked(b"A" * (3 * WINDOW))
    for place in range(0, 3 * WINDOW, 4):
        assert not stretches.base64(place, 0)
    assert [len(plain) for plain in seen][:2] == [WINDOW * 3 // 4] * 2
    assert len(seen) <= 3 * WINDOW // (WINDOW - REACH) + 1


def test_other_codings() -> None:
    assert _looked(b"wanted".hex().encode())[0].hexadecimal(0)
    assert _looked("wanted".encode("utf-16-le"))[0].wide(0)
    assert _looked(b"\\u0077anted")[0].escapes(0)
    zipped = base64.b64encode(gzip.compress(b"wanted"))
    assert _looked(zipped)[0].zipped(0)
    assert _looked(b"\\n" + zipped)[0].zipped(2)
    assert not _looked(b"x" + zipped)[0].zipped(1)
    assert not _looked(b"H4sI" + b"A" * 40)[0].zipped(0)
