"""Tells in one line which files were skipped."""

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

from cragside.composition.files import EMPTY

_MOST_KINDS = 8
_LONGEST_REASON = 60
_UNSUPPORTED = "not supported"
_TOO_LARGE = " bytes, the limit is "


def counted_by_kind(files: Iterable[tuple[str, str]]) -> str:
    """The names and reasons of skipped files by kind: "12 files: 9 .png (not supported), 3 empty"."""
    kinds = Counter(_kind(name, reason) for name, reason in files)
    counts = [f"{count} {kind}" for kind, count in kinds.most_common(_MOST_KINDS)]
    if len(kinds) > _MOST_KINDS:
        counts.append(f"{kinds.total() - sum(count for _, count in kinds.most_common(_MOST_KINDS))} others")
    return f"{kinds.total()} files: {', '.join(counts)}"


def _kind(name: str, reason: str) -> str:
    if reason == EMPTY:
        return "empty"
    kind = PurePath(name).suffix.lower() or "without an ending"
    if _TOO_LARGE in reason:
        return f"{kind} (too large: see RAG_MAX_FILE_BYTES)"
    if _UNSUPPORTED in reason:
        return f"{kind} ({_UNSUPPORTED})"
    return f"{kind} ({reason})" if len(reason) <= _LONGEST_REASON else kind
