"""The language of a question, or none: a question has few words, and a wrong guess would mislead."""

from cragside.adapters.embedded.foreign import french_words
from cragside.adapters.embedded.language import iso_639_1
from cragside.adapters.embedded.stopwords import ENGLISH, GERMAN, NEIGHBOURS
from cragside.adapters.embedded.words import words

# Two words are a name as often as a question.
_FEWEST_WORDS = 3
# So many function words more than any other language has suffice without the detector.
_CLEAR_LEAD = 2
_LONGEST_READ = 400
_LISTED = frozenset({"en", "de", "fr"})
_NEIGHBOURS = frozenset({"es", "it", "nl", "pt"})


def question_language(text: str) -> str | None:
    """The code (ISO 639-1) of a question's language; None for names, keywords and whatever else leaves a doubt.

    The function words of the question and the detector have to agree, unless the words are clear by themselves.
    """
    read = text[:_LONGEST_READ]
    found = words(read)
    if len(found) < _FEWEST_WORDS:
        return None
    detected = iso_639_1(read)
    if not any(letter.isascii() for letter in read if letter.isalpha()):
        return detected  # the script leaves few languages to choose from
    longer = [word for word in found if len(word) > 1]
    counts = {
        "en": sum(map(ENGLISH.__contains__, longer)),
        "de": sum(map(GERMAN.__contains__, longer)),
        "fr": french_words(longer),
    }
    neighbours = sum(map(NEIGHBOURS.__contains__, longer))
    if detected in _NEIGHBOURS:
        return detected if neighbours >= _CLEAR_LEAD and neighbours > max(counts.values()) else None
    second, first = sorted(counts.values())[-2:]
    leading = max(counts, key=counts.__getitem__)
    if leading == detected:
        return leading if first > second else None
    clear = first - second >= _CLEAR_LEAD and first >= neighbours
    return leading if clear and (detected is None or leading != "fr") else None
