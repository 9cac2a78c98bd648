"""Reads transcripts (WebVTT, SubRip, SubStation Alpha): speakers and their words, with a time every half minute."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable, label, present
from cragside.adapters.documents.texts import decoded, meeting_facts

_CLOCK = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}"
_TIMES = re.compile(rf"\s*+{_CLOCK}\s++-->\s++{_CLOCK}")
_SPEAKER = re.compile(r"<v(?:\.[^\s>]{1,80}+)?\s++([^>]{1,100}+)>")
_TAG = re.compile(r"</?[A-Za-z0-9][^<>]{0,200}+>")
_NAMED = re.compile(r"([A-ZÀ-Þ][\w .'-]{0,60}?): ")


# In a row of SubStation Alpha: how the text looks, a drawing in place of text, breaks and hard blanks.
_LOOK = re.compile(r"\{[^{}]{0,2000}\}")
_DRAWING = re.compile(r"\{[^{}]{0,2000}\\p[1-9]")
_BREAK = re.compile(r"\\[Nnh]")
_CLOCK_OF_ROWS = re.compile(r"\s{0,5}(\d{1,3}):(\d{1,2}):(\d{2})[.:,]\d{1,3}")
_COLUMNS = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
_APART = 30  # seconds between two times in the text


@dataclass(frozen=True, slots=True)
class _Cue:
    """Words that are shown together from `start` to `end`, in seconds."""

    start: int
    end: int
    text: str
    speaker: str = ""


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the spoken text. Raises `Unreadable` if there is none."""
    text = decoded(content, origin)
    cues = _rows(text) if origin.file_type in ("ass", "ssa") or text.startswith("[Script Info]") else _cues(text)
    speakers, lines, seconds = list[str](), list[tuple[int, str]](), 0
    for cue in cues:
        seconds = max(seconds, cue.end)
        line = " ".join(cue.text.split())
        named = _NAMED.match(line)
        if cue.speaker and not named:
            line = f"{cue.speaker}: {line}"
        if cue.speaker or named:
            speakers.append(cue.speaker or named[1].strip())  # type: ignore[index]
        # Captions repeat a line while the next one appears.
        if line and (not lines or lines[-1][1] != line):
            lines.append((cue.start, line))
    if not lines:
        raise Unreadable("holds no spoken text")
    spoken = "\n".join(_joined(lines))
    _, known = meeting_facts(spoken)
    return Reading(
        spoken, "meeting", tier1=present({**known, "duration": _clock(seconds, "02"), "participants": speakers})
    )


def _cues(text: str) -> Iterator[_Cue]:
    for block in re.split(r"\n[ \t]*+\n", text):
        lines = block.split("\n")
        for number, line in enumerate(lines[:3]):
            if times := _TIMES.match(line):
                said = "\n".join(lines[number + 1 :])
                voice = _SPEAKER.search(said)
                start, end = _seconds(times.groups()[:3]), _seconds(times.groups()[3:])
                yield _Cue(start, end, _TAG.sub("", said), voice[1].strip() if voice else "")
                break


def _rows(text: str) -> list[_Cue]:
    """Return the dialogue of SubStation Alpha. Its rows need not be in the order of their times."""
    columns, cues = _COLUMNS, list[_Cue]()
    for line in text.split("\n"):
        key, _, row = line.partition(":")
        if key == "Format" and "text" in row.lower():
            columns = [name.strip().lower() for name in row[:1000].split(",")]
        if key != "Dialogue" or _DRAWING.search(row[:10_000]):
            continue
        values = dict(zip(columns, row.split(",", len(columns) - 1), strict=False))
        start, end = (_CLOCK_OF_ROWS.match(values.get(name, "")) for name in ("start", "end"))
        if start and end:
            said = _BREAK.sub(" ", _LOOK.sub("", values.get("text", "")[:10_000]))
            name = label(values.get("name", values.get("actor", "")), 100)
            cues.append(_Cue(_seconds(start.groups()), _seconds(end.groups()), said, name))
    return sorted(cues, key=lambda cue: cue.start)


def _seconds(parts: Iterable[str | None]) -> int:
    hours, minutes, seconds = (int(part or 0) for part in parts)
    return hours * 3600 + minutes * 60 + seconds


def _clock(seconds: int, hours: str = "") -> str:
    """Return a time as [7:31] or 01:02:05."""
    if hours or seconds >= 3600:
        return f"{seconds // 3600:{hours}}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
    return f"{seconds // 60}:{seconds % 60:02}"


def _joined(lines: list[tuple[int, str]]) -> Iterator[str]:
    """Join consecutive lines of one speaker, with a time where half a minute has passed since the one before."""
    speaker, speech, last_time = "", list[str](), -_APART
    for start, line in lines:
        time = f"[{_clock(start)}] " if start >= last_time + _APART else ""
        last_time = start if time else last_time
        named = _NAMED.match(line)
        if named and named[1] == speaker:
            speech.append(time + line[named.end() :])
            continue
        if speech:
            yield " ".join(speech)
        speaker, speech = named[1] if named else "", [time + line]
    if speech:
        yield " ".join(speech)
