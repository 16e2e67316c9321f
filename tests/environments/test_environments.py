"""The important proofs in processes of their own: other hash seeds, time zones and locales, and the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
#: Hash seed, time zone (with odd offsets, with summer time), locale, UTF-8 mode, development mode.
ENVIRONMENTS = [
    ("0", "UTC", "C", "0", ""),
    ("1", "Asia/Kathmandu", "C.UTF-8", "1", ""),
    ("4242", "America/St_Johns", "POSIX", "0", "1"),
    ("random", "Pacific/Apia", "tr_TR.UTF-8", "0", ""),
]


def facts(seed: str, zone: str, locale: str, utf8: str, dev: str) -> dict[str, str]:
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))},
        "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale, "LANG": locale, "PYTHONUTF8": utf8,
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }  # fmt: skip
    command = [sys.executable, *(["-X", "dev"] if dev else []), "-m", "tests.environments.facts"]
    done = subprocess.run(
        command, cwd=_ROOT, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def first() -> dict[str, str]:
    return facts(*ENVIRONMENTS[0])


@pytest.mark.parametrize("environment", ENVIRONMENTS[1:], ids=lambda environment: environment[1])
def test_the_same_bytes_everywhere(
    environment: tuple[str, str, str, str, str], first: dict[str, str]
) -> None:
    print(f"hash seed, zone, locale: {environment}")
    assert facts(*environment) == first


#: Proofs that say themselves what is equal, rerun whole.
RERUN = (
    ("tests/simulation/test_mixed_programs.py", "-k", "written_down or says_what"),
    ("tests/format/test_values.py",),
    ("tests/golden",),
    ("tests/store/test_memory.py",),
)


@pytest.mark.parametrize(
    "environment", [ENVIRONMENTS[1], ENVIRONMENTS[2]], ids=lambda environment: environment[1]
)
@pytest.mark.parametrize("proof", RERUN, ids=lambda proof: proof[0].rpartition("/")[2])
def test_proofs_hold_everywhere(
    proof: tuple[str, ...], environment: tuple[str, str, str, str, str], tmp_path: Path
) -> None:
    seed, zone, locale, utf8, _ = environment
    env = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale, "PYTHONUTF8": utf8}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins of other packages would take half of the time
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 't'}",
    ]
    done = subprocess.run(
        [*command, *proof], cwd=_ROOT, env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
