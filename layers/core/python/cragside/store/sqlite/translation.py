"""Statements of PostgreSQL in the words of SQLite.

The ledger's statements are written once. Whatever has another word in SQLite is in the tables below. A statement with a
word that is left is refused.
"""

# ruff: noqa: S608 - expressions that find statements, and none that run

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson

# Of the statement as it is written.
_FRAGMENTS = (
    ("version IN (SELECT version FROM crag.document WHERE store = $1) AND ", ""),
    ("$1::bigint IS NOT NULL", "true"),
    ("(store, ", "("),
    ("VALUES ($1, ", "VALUES ("),
    # The text of a passage is in LightRAG's storage alone.
    (", text = NULL", ""),
    ('substring(tier2 FROM \'"language": "([a-z]+)"\')', "json_extract(tier2, '$.language')"),
    (
        "jsonb_set(coalesce(tier3, '{}')::jsonb, '{extraction}', $5::jsonb)::text",
        "json_set(coalesce(tier3, '{}'), '$.extraction', json($5))",
    ),
    # SQLite keeps the ids of the one, and would read all of the other for each mention.
    ("NOT EXISTS (SELECT 1 FROM gone WHERE gone.id = other.passage)", "other.passage NOT IN (SELECT id FROM gone)"),
    ("crag.query WHERE store = $1 ORDER BY seq", "query ORDER BY rowid"),
    # SQLite reads the last number alone. PostgreSQL has those of other stores between them.
    (
        "SELECT seq FROM crag.embedding WHERE store = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2",
        "SELECT max(seq) - $2 FROM embedding",
    ),
)
_NAME = r"[\w.$]{1,40}"
_PATTERNS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # A store is a file of its own.
        (r"\b(?:\w{1,20}\.)?store = (?:\$1\b|\w{1,20}\.store\b)", "true"),
        # SQLite's indexes hold texts of any length, those of PostgreSQL a digest or a beginning.
        (rf"\bmd5\({_NAME}\) = ANY\(SELECT md5\(each\) FROM unnest\(\$\d{{1,2}}::text\[\]\) AS each\) AND ", ""),
        (rf"\bmd5\({_NAME}\) = md5\({_NAME}\) AND ", ""),
        (rf"\bleft\({_NAME}, 400\) [<>]= left\({_NAME}, 400\) AND ", ""),
        (rf"\bleft\(({_NAME}), (\d{{1,4}})\)", r"substr(\1, 1, \2)"),
        # Lists are JSON, which holds no bytes: lists of bytes are spread over parameters of their own.
        (r"= ANY\((\$\d{1,2})::bytea\[\]\)", r"IN (\1[])"),
        (r"= ANY\((\$\d{1,2})\)", r"IN (SELECT value FROM json_each(\1))"),
        (r"::[a-z]{1,10}", ""),
        (
            r"\b(passage|opening)\.text\b",
            r"(SELECT json_extract(kv.value, '$.content') FROM kv"
            r" WHERE kv.namespace = 'text_chunks' AND kv.id = \1.id)",
        ),
    )
)
_WORDS = (
    # What is read in a transaction stays: no two write at one time.
    (" FOR SHARE", ""),
    # SQLite compares texts by their bytes, and knows the case of 26 letters only. Python folds it.
    (' COLLATE "C"', ""),
    (' COLLATE "und-x-icu"', ""),
    ("lower(", "folded("),
    ("bool_or(", "max("),
    ("bool_and(", "min("),
    ("greatest(", "max("),
    ("strpos(", "instr("),
    ("chr(", "char("),
    # `passage` is the table of full-text search.
    ("crag.passage AS ", "chunk AS "),
    ("crag.passage", "chunk AS passage"),
    ("crag.", ""),
)
_NUMBER = re.compile(r"\$(\d{1,2})")
_LEFT = re.compile(r"\$1\b|::|\bstore\b|\bANY\b|\bCOLLATE\b|\bLATERAL\b|\bFOR UPDATE\b|\bmd5\b|\bcrag\b")


class Untranslatable(ValueError):
    """A statement has a word that SQLite has not."""


@lru_cache(maxsize=1000)
def translated(sql: str) -> str:
    """Return the statement for SQLite. Its parameters are the values without the store's number."""
    translation = sql
    for fragment, other in _FRAGMENTS:
        translation = translation.replace(fragment, other)
    for pattern, other in _PATTERNS:
        translation = pattern.sub(other, translation)
    for word, other in _WORDS:
        translation = translation.replace(word, other)
    if left := _LEFT.search(translation):
        raise Untranslatable(f"SQLite has no {left[0]!r}: {sql}")
    return _NUMBER.sub(lambda number: f"?{int(number[1]) - 1}", translation)


def bound(sql: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Translate a statement, and give its values as SQLite takes them."""
    sql, parameters = translated(sql), list(values)
    for number, value in enumerate(values, start=1):
        if not isinstance(value, list):
            continue
        if (mark := f"?{number}[]") in sql:
            # The first has the place of the list, which is NULL without one.
            numbers = (number, *range(len(parameters) + 1, len(parameters) + len(value)))
            sql = sql.replace(mark, ", ".join(f"?{each}" for each in numbers))
            parameters[number - 1] = value[0] if value else None
            parameters += value[1:]
        else:
            parameters[number - 1] = orjson.dumps(value).decode()
    return sql, parameters
