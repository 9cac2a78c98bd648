"""The languages of questions and documents, and if a model finds documents in another language than the question."""

from collections.abc import Mapping

# How many passages there are of each language (ISO 639-1). "" stands for those without one, such as tables, and None
# for those that nobody has read yet.
Languages = Mapping[str | None, int]

# Embedding models that know words, but not which words of two languages mean the same.
_WITHIN_ONE = frozenset({"wordllama-256"})
# Of texts as short as passages, a few are taken for texts in another language.
_LEAST_SHARE = 0.05
# With more passages unread, or fewer with a language, the store may hold a language that was not counted.
_MOST_UNREAD, _LEAST_KNOWN = 0.05, 0.5
_NAMES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}

REMEDY = "A multilingual embedding model on the model host does: RAG_EMBEDDING_MODEL=bge-m3, then `cragside reindex`."


def crosses_languages(embedding_model: str) -> bool:
    """Tell if a question may find passages in another language. Only the embedded model is known not to."""
    return embedding_model not in _WITHIN_ONE


def languages_of(passages: Languages) -> list[str]:
    """Return the names of the languages in which a noticeable share of the passages are, most frequent first."""
    known = {code: count for code, count in passages.items() if code}
    least = _LEAST_SHARE * sum(known.values())
    frequent = sorted((code for code, count in known.items() if count >= least), key=lambda code: (-known[code], code))
    return [_NAMES.get(code, code) for code in frequent]


def foreign_question(question: str | None, passages: Languages) -> str:
    """Return a sentence about a question in another language than the documents; "" where that is not so or not known.

    `question` is the code of its language, None if that is not known.
    """
    total, unread = sum(passages.values()), passages.get(None, 0)
    known = total - unread - passages.get("", 0)
    if question is None or unread > _MOST_UNREAD * total or known < _LEAST_KNOWN * total:
        return ""
    asked = _NAMES.get(question, question)
    *others, last = [name for name in languages_of(passages) if name != asked] or [""]
    if not last:
        return ""
    written = f"{', '.join(others)} and {last}" if others else last
    which = "some documents" if question in passages else "the documents"
    return (
        f"The question is in {asked}, {which} are in {written}. The embedded model does not cross languages. {REMEDY}"
    )
