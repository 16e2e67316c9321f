"""The account database of the story: a real SQLite file, and the one function that loses rows.

python accounts.py        makes accounts.db beside this file, or makes it anew
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

DATABASE = Path(__file__).with_name("accounts.db")
STAGING = 40, 12
"""Accounts in staging, and how many of them are inactive."""
PRODUCTION = 12_480, 4_031
"""The same for production."""
INACTIVE_DAYS = 90


def create(path: Path = DATABASE) -> None:
    """Make the database anew: the same accounts each time."""
    path.unlink(missing_ok=True)
    draw = random.Random(904)
    rows: list[tuple[str, str, int]] = []
    for target, (total, inactive) in (("staging", STAGING), ("production", PRODUCTION)):
        for number in range(total):
            days = (
                draw.randint(INACTIVE_DAYS + 1, 900) if number < inactive else draw.randint(0, INACTIVE_DAYS)
            )
            rows.append((target, f"user{number:05}@example.com", days))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE accounts (target TEXT, email TEXT, days_inactive INTEGER)")
        database.executemany("INSERT INTO accounts VALUES (?, ?, ?)", rows)


def count(path: Path = DATABASE) -> dict[str, int]:
    """How many accounts each target has."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT target, count(*) FROM accounts GROUP BY target ORDER BY target DESC")
        return dict(rows.fetchall())


def delete(target: str, days: int, path: Path = DATABASE) -> int:
    """Delete the accounts of ``target`` that were inactive for more than ``days``; returns how many rows are gone."""
    with closing(sqlite3.connect(path)) as database, database:
        return database.execute(
            "DELETE FROM accounts WHERE target = ? AND days_inactive > ?", (target, days)
        ).rowcount


if __name__ == "__main__":
    create()
