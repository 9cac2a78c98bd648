"""The tables of the queue's file."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from cragside.adapters.private_files import make_file, make_folder, tighten

SCHEMA_VERSION = 2
BUSY_SECONDS = 5.0
LONGEST_LOG_BYTES = 1_000_000
# The files of the queue, its worker and the settings in RAG_HOME.
_OURS = (".queue.sqlite3*", ".worker.lock", ".settings.json*")

# `lease` is the end of the lease, NULL for a waiting task. `deaths` counts the workers that died with the task.
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
    """Open the queue's file. Create it if it is missing.

    With WAL and `synchronous=NORMAL`, a killed process loses nothing that was committed. A power cut may lose the last
    commits; the worker's sweep restores them.
    """
    make_folder(path.parent)
    with suppress(FileExistsError):
        make_file(path)
    # SQLite gives its auxiliary files the permissions of the main file.
    tighten(*(found for ours in _OURS for found in path.parent.glob(ours)))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
    try:
        # The file shrinks when tasks are deleted: the queue's small transactions can afford it. This has to come first.
        connection.execute("PRAGMA auto_vacuum = FULL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {LONGEST_LOG_BYTES}")
        _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    if _version(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made the tables meanwhile.
        if _version(connection) == 0:
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    if (version := _version(connection)) != SCHEMA_VERSION:
        raise QueueFormatError(f"it has format {version}, and this version of cragside reads format {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
