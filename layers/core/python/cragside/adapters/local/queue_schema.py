"""The queue's file: its tables and its one connection."""

import sqlite3
from pathlib import Path

SCHEMA_VERSION = 1
BUSY_SECONDS = 5.0

# `lease` is when it runs out, None for a task that waits; `deaths` counts the workers that ended with it in hand.
_SCHEMA = """
CREATE TABLE task (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, grp TEXT NOT NULL,
    workspace TEXT NOT NULL, document_id TEXT NOT NULL, content_hash TEXT NOT NULL, part INTEGER NOT NULL,
    stage TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL, lease REAL, token TEXT);
CREATE INDEX task_by_key ON task (key);
CREATE INDEX task_by_document ON task (workspace, document_id, stage);
CREATE INDEX task_by_turn ON task (workspace, stage, id) WHERE lease IS NULL;
CREATE INDEX task_in_hand ON task (lease, grp) WHERE lease IS NOT NULL;
CREATE TABLE dead (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,
    workspace TEXT NOT NULL, document_id TEXT NOT NULL, content_hash TEXT NOT NULL, part INTEGER NOT NULL,
    stage TEXT NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL, at TEXT NOT NULL);
"""


class QueueFormatError(Exception):
    """The file is not a queue of this version."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the queue's file, and make it if there is none.

    WAL with `synchronous=NORMAL`: a killed process loses nothing that was committed; after a power cut the worker's
    sweep finds what the last commits may have lost.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    if _version(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made the tables while this one waited.
        if _version(connection) == 0:
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    if (version := _version(connection)) != SCHEMA_VERSION:
        raise QueueFormatError(f"it has format {version}, and this version of cragside reads format {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
