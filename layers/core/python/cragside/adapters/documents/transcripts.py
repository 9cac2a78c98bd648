"""Reads transcripts of meetings (WebVTT, SubRip): speakers and their words, without times."""

import re
from collections.abc import Iterator

from cragside.adapters.documents.meetings import described
from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable, present
from cragside.adapters.documents.texts import decoded

_CLOCK = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}"
_TIMES = re.compile(rf"\s*+{_CLOCK}\s++-->\s++{_CLOCK}")
_SPEAKER = re.compile(r"<v(?:\.[^\s>]{1,80}+)?\s++([^>]{1,100}+)>")
_TAG = re.compile(r"</?[A-Za-z0-9][^<>]{0,200}+>")
_NAMED = re.compile(r"([A-ZÀ-Þ][\w .'-]{0,60}?): ")


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The spoken text. Raises `Unreadable` if there is none."""
    text = decoded(content, origin)
    speakers, lines, seconds = list[str](), list[str](), 0
    for end, block in _cues(text):
        seconds = max(seconds, end)
        voice = _SPEAKER.search(block)
        line = " ".join(_TAG.sub("", block).split())
        named = _NAMED.match(line)
        if voice and not named:
            line = f"{voice[1].strip()}: {line}"
        if voice or named:
            speakers.append((voice or named)[1].strip())  # type: ignore[index]
        # Captions repeat a line while the next one appears.
        if line and (not lines or lines[-1] != line):
            lines.append(line)
    if not lines:
        raise Unreadable("holds no spoken text")
    spoken = "\n".join(_joined(lines))
    _, known = described(spoken)
    duration = f"{seconds // 3600:02}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
    return Reading(spoken, "meeting", tier1=present({**known, "duration": duration, "participants": speakers}))


def _cues(text: str) -> Iterator[tuple[int, str]]:
    """The end of each cue in seconds, and its text."""
    for block in re.split(r"\n[ \t]*+\n", text):
        lines = block.split("\n")
        for number, line in enumerate(lines[:3]):
            if times := _TIMES.match(line):
                hours, minutes, seconds = (int(part or 0) for part in times.groups()[3:])
                yield hours * 3600 + minutes * 60 + seconds, "\n".join(lines[number + 1 :])
                break


def _joined(lines: list[str]) -> Iterator[str]:
    """Join consecutive lines of one speaker."""
    speaker, speech = "", list[str]()
    for line in lines:
        named = _NAMED.match(line)
        if named and named[1] == speaker:
            speech.append(line[named.end() :])
            continue
        if speech:
            yield " ".join(speech)
        speaker, speech = named[1] if named else "", [line]
    if speech:
        yield " ".join(speech)
