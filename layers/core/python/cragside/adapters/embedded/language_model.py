"""Answers LightRAG's indexing prompts without a language model."""

import json
import re
from collections.abc import Mapping, Sequence

from typing_extensions import override

from cragside.adapters.embedded.extraction import MOST_ENTITIES, MOST_RELATIONS, extract
from cragside.adapters.embedded.keywords import keywords_of
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.models import LanguageModel

DELIMITER = "<|#|>"
COMPLETE = "<|COMPLETE|>"

# The first words of a prompt identify it. No document can change them.
_HEAD = 400
_INPUT_START = "\n---Input Text---\n```\n"
_INPUT_END = "\n```\n"
_TYPE = re.compile(r"^- ([A-Za-z][A-Za-z ]{0,40}):", re.MULTILINE)
_ENTITY_LIMIT = re.compile(r"at most (\d{1,6}) entity")
_RECORD_LIMIT = re.compile(r"at most (\d{1,6}) total")
_SUMMARY_LIMIT = re.compile(r"must not exceed (\d{1,6}) tokens")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_CHARACTERS_A_TOKEN = 4
# Field delimiters consist of these characters; in a field, look-alikes replace them.
_HARMLESS = str.maketrans({"<": "‹", ">": "›", "|": "¦"})


class EmbeddedLanguageModel(LanguageModel):
    """Answers LightRAG's prompts by rules: extraction, gleaning, merging descriptions, keywords.

    It is deterministic and takes time linear in the length of the text. It refuses any other prompt.
    """

    @override
    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        head = prompt[:_HEAD]
        if "Extract entities and relationships" in head and _INPUT_START in prompt:
            return _extraction(prompt, system or "")
        if "Based on the last extraction task" in head:
            return '{"entities": [], "relationships": []}' if "JSON" in prompt else COMPLETE
        if "synthesize a list of descriptions" in head:
            return _summary(prompt)
        if "high_level_keywords" in prompt and "User Query:" in prompt:
            return _keywords(prompt)
        raise ServiceUnavailable("extractor", "The embedded extractor answers only LightRAG's own prompts.")


def _extraction(prompt: str, system: str) -> str:
    body = prompt[prompt.index(_INPUT_START) + len(_INPUT_START) :]
    text = body.rpartition(_INPUT_END)[0] or body
    instructions = prompt[: prompt.index(_INPUT_START)]
    entities, relations = extract(text, _TYPE.findall((system or instructions).partition("---Entity Types---")[2]))
    entities = entities[: _limit(_ENTITY_LIMIT, instructions, MOST_ENTITIES)]
    names = {entity.name for entity in entities}
    room = max(0, _limit(_RECORD_LIMIT, instructions, MOST_ENTITIES + MOST_RELATIONS) - len(entities))
    relations = [r for r in relations if r.source in names and r.target in names][:room]
    if "JSON" in instructions:
        return json.dumps(
            {
                "entities": [{"name": e.name, "type": e.kind, "description": e.description} for e in entities],
                "relationships": [
                    {"source": r.source, "target": r.target, "keywords": r.keywords, "description": r.description}
                    for r in relations
                ],
            },
            ensure_ascii=False,
        )
    rows = [_row("entity", e.name, e.kind, e.description) for e in entities]
    rows += [_row("relation", r.source, r.target, r.keywords, r.description) for r in relations]
    return "\n".join([*rows, COMPLETE])


def _row(*fields: str) -> str:
    return DELIMITER.join(" ".join(field.translate(_HARMLESS).split()) for field in fields)


def _limit(pattern: re.Pattern[str], text: str, ours: int) -> int:
    found = pattern.search(text)
    return min(ours, int(found.group(1))) if found else ours


def _summary(prompt: str) -> str:
    """Return the distinct sentences of all descriptions, in order, within the length limit of the prompt."""
    listed = prompt.partition("Description List:")[2]
    limit = _limit(_SUMMARY_LIMIT, prompt, 100_000) * _CHARACTERS_A_TOKEN
    kept: dict[str, str] = {}
    length = 0
    for line in listed.splitlines():
        for sentence in _SENTENCE.split(_described(line)):
            key = " ".join(sentence.lower().split())
            if not key or key in kept:
                continue
            if kept and length + len(sentence) > limit:
                return " ".join(kept.values())
            kept[key] = sentence.strip()[:limit]
            length += len(sentence) + 1
    return " ".join(kept.values())


def _described(line: str) -> str:
    if not line.startswith("{"):
        return ""
    try:
        description = json.loads(line).get("Description", "")
    except (ValueError, RecursionError):
        return ""
    return description if isinstance(description, str) else ""


def _keywords(prompt: str) -> str:
    question = prompt.rpartition("User Query:")[2].rpartition("---Output---")[0] or prompt.rpartition("User Query:")[2]
    found = keywords_of(question.strip())
    return json.dumps({"high_level_keywords": found.high, "low_level_keywords": found.low}, ensure_ascii=False)
