"""Splits texts into words and stems for lexical matching, and lists words of grammar and words without a topic."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Literal
from unicodedata import normalize

import Stemmer


@cache
def word_lists() -> Mapping[str, str]:
    """Return the lists of `word_lists.txt`, which has the name of each before its words."""
    text = resources.files(__package__).joinpath("word_lists.txt").read_text(encoding="utf-8")
    named = (part.partition("]\n") for part in text.removeprefix("[").split("\n["))
    return {name: words for name, _, words in named}


def listed(words: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(words.split())


def word_list(name: str) -> frozenset[str]:
    """Return the words of a list in `word_lists.txt`."""
    return listed(word_lists()[name])


FRENCH_INTERROGATIVES = listed("qui que quoi quel quelle quels quelles quand où pourquoi comment combien")
INTERROGATIVES = FRENCH_INTERROGATIVES | word_list("interrogatives")
AND = listed("and & und sowie et")
OR = listed("or oder ou bzw bzw.")
BUT = listed("but aber mais")
ARTICLES = listed("the a an der die das den dem des ein eine einen einem einer eines")
FRENCH_ARTICLES = listed("le la les l' un une des du au aux d'")
PREPOSITIONS = word_list("prepositions")
# Verbs of a sentence, which neither a title nor a question without a question mark has behind its first word.
VERBS = word_list("verbs")


# The index leaves out the words of ENGLISH, GERMAN and OTHER (`words.terms`): another word there is another format of
# stores. The longer lists of other languages are for the grader, and to tell the languages apart.
ENGLISH = word_list("english")
GERMAN = word_list("german")
# The most frequent function words of French, Spanish, Italian, Portuguese, Dutch, Russian and Arabic. Some have a
# meaning in English or German, so they count only in texts of neither language.
OTHER = word_list("other")

# Polite phrases and other wording of a request. They are without a topic in questions, but not in passages.
SCAFFOLDING = word_list("scaffolding")

# Without the accents, as `words` gives them. Some are also English or German words: car, on, son.
FRENCH = word_list("french")

# Frequent words of questions, beside the function words of the index, whose absence says nothing.
GERMAN_ASKING = word_list("german asking")
FRENCH_ASKING = word_list("french asking")

STOPWORDS = ENGLISH | GERMAN

# Function words of Spanish, Italian, Portuguese and Dutch, likewise without accents: these are not taken for French.
NEIGHBOURS = word_list("neighbours")

# Words of titles and transcripts, which say nothing about their subject.
HEADING_WORDS = word_list("heading words")


# In scripts without spaces, pairs of characters take the place of words. Those of a question word, and those that it
# forms with its neighbours, are in no answer. A preposition before it belongs to it.
_CHINESE = (
    "(?:[由被给給跟向对對为為在从從于於])?(?:什么时候|什麼時候|什么|什麼|哪[家个個些里裡儿兒位天年种種]|谁|誰|"
    "几[点個个号天月年楼次位]|幾[點個号號天月年樓次位])|[为為](?:什么|什麼|何)|怎[么麼样樣](?:样|樣)?|如何|多少|多久|何[时時地处處]|是否|请问|請問"
)
_JAPANESE = "(?<![幾几])何[時人日年月曜処故]?|誰|幾[らつ]"
_THAI = "ใคร|อะไร|ที่ไหน|เมื่อ(?:ไหร่|ไร|ใด)|ทำไม|อย่างไร|ยังไง|เท่า(?:ไหร่|ไร|ใด)|กี่(?:โมง)?|ไหน|ใด|หรือไม่|ไหม"
_ENDS = "인가요?|인지|입니까|이?에요|예요|이?나요|에서|에게|까지|부터|으?로|[이가은는을를의에]"
_KOREAN = f"(?<![가-힣])(?:어디|누구|누가|무엇|뭐|무슨|언제|어느|어떤|어떻게|몇|왜|얼마나?)(?:{_ENDS})?(?![가-힣])"
_ASKING = re.compile("|".join((_CHINESE, _JAPANESE, _THAI, _KOREAN)))
# Of more than one syllable. Shorter ones stand at the end of many words by chance, so two syllables must remain.
_PARTICLE = re.compile(
    "(?<=[가-힣])(?:에게서|으로부터|으로는|에서는|까지는|부터는|에서|에게|한테|까지|부터|으로|처럼|보다|마다)$"
)
_SHORT_PARTICLE = re.compile("(?<=[가-힣]{2})[은는이가을를의에로와과도만]$")
# Endings of verbs, in single letters, because some begin in the last syllable of the verb: 열리다, 열린다.
_ENDING = re.compile(
    normalize(
        "NFD",
        "(?:습니다|습니까|\u11b8니다|\u11b8니까|\u11ab다|는다|는가|\u11ab가|나요|\u11bb다|였다|하나|하\u11ab|하는|하여|하고|하다|이다)$",
    )
)
_AUXILIARY = re.compile(normalize("NFD", "(?<=.)(?:하였|하|이)$"))


def without_asking(text: str) -> str:
    """Return the question without its question words in these languages."""
    return text if text.isascii() else _ASKING.sub(" ", text)


def korean_stem(word: str) -> str:
    """Return a Korean word without its particle or ending; any other word as it is."""
    if not "가" <= word[-1:] <= "힣":
        return word
    verb, endings = _ENDING.subn("", normalize("NFD", word))
    if endings and (stem := normalize("NFC", _AUXILIARY.sub("", verb))):
        return stem
    shorter = _PARTICLE.sub("", word)
    return shorter if shorter != word else _SHORT_PARTICLE.sub("", word)


Language = Literal["english", "german", "french"]

# Scripts without spaces: Thai, Lao, Burmese, Khmer, katakana, Han. In them, characters that mostly express grammar
# (hiragana, the most frequent Chinese particles) separate words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u30a0-\u30ff\u3400-\u9fff\uf900-\ufaff"
_GRAMMAR = "\u3040-\u309f的了是在和吗呢什么"
# Combining marks of Latin, Hebrew, Arabic and the Indic scripts, which Python's \w leaves out.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
_WORD = re.compile(
    rf"(?P<grammar>[{_GRAMMAR}]+)"
    rf"|(?P<unspaced>(?:(?![{_GRAMMAR}])[{_UNSPACED}])+)"
    r"|\d+(?:[.,:]\d+)+"
    rf"|(?:(?![{_UNSPACED}{_GRAMMAR}])[^\W_])(?:(?![{_UNSPACED}{_GRAMMAR}])[^\W_]|[{_MARKS}]|['’](?=[^\W_]))*(?:\+\+|\#)?"
)
# For ASCII texts: it finds the same words in a third of the time.
_ASCII_WORD = re.compile(r"[0-9]+(?:[.,:][0-9]+)+|[a-z0-9](?:[a-z0-9]|'(?=[a-z0-9]))*(?:\+\+|#)?")
# Remains of tokenised forms such as "it's", "don't", "I'm" and "he'd".
_CLITICS = frozenset({"s", "t", "d", "m", "ll", "re", "ve"})
# The plain letters of umlauts.
UMLAUTS = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})


def words(text: str) -> list[str]:
    """Lower-case words without accents, in order. Scripts without spaces give overlapping pairs of characters."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = _folded(text)
    found: list[str] = []
    grammar: list[str] = []
    for match in _WORD.finditer(text):
        kind = match.lastgroup
        if kind is None:
            found.append(match.group())
        else:
            (grammar if kind == "grammar" else found).extend(_pairs(match.group()))
    return found or grammar


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _folded(text: str) -> str:
    """Lower case without the accents of Latin letters, except German umlauts: `Hōryū-ji` is `horyu-ji`."""
    return unicodedata.normalize("NFKC", text).lower().translate(_accents())


@lru_cache(maxsize=1)
def _accents() -> dict[int, str]:
    """Return the plain letters of accented Latin letters."""
    letters = map(chr, [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)])
    bases = {letter: unicodedata.normalize("NFD", letter)[0] for letter in letters if letter.lower() not in "äöüß"}
    return {ord(letter): base for letter, base in bases.items() if base != letter and base.isascii()}


def language_of(found: Sequence[str]) -> Language:
    """English or German, whichever has more function words in the text; English if there are none."""
    german = sum(map(GERMAN.__contains__, found))
    if not all(map(str.isascii, found)):
        german += sum(1 for word in found if word not in GERMAN and any(c in "äöüß" for c in word))
    return "german" if german > sum(map(ENGLISH.__contains__, found)) else "english"


def function_words(found: list[str]) -> frozenset[str]:
    """Return the words without a topic in the language of a text, which is given as the result of `words`."""
    if language_of(found) == "german":
        return GERMAN
    return ENGLISH if any(word in ENGLISH for word in found) else ENGLISH | OTHER


def terms(text: str) -> list[str]:
    """Return the stems of words without function words, in order, with repetitions.

    Both sides of a comparison use it, so equal words of a question and a passage give equal terms. A question with
    cached words takes 0.05 ms. A text as German as it is English ("Was fressen Raupen?") gives the stems of both.
    """
    found = words(text)
    known = stems(found, language_of(found))
    if 0 < sum(map(GERMAN.__contains__, found)) == sum(map(ENGLISH.__contains__, found)):
        known += [term for term in stems(found, "german") if term not in known]
    return known


def stems(found: list[str], language: Language, stop: frozenset[str] | None = None) -> list[str]:
    """Return the stems of words (from `words`) without function words, by default those of their language."""
    if stop is None:
        stop = GERMAN if language == "german" else function_words(found)
    return [stem(word, language) for word in found if word not in stop and word not in _CLITICS]


def is_filler(word: str, stop: frozenset[str]) -> bool:
    """Tell if a word, as written in its text, is one of `stop`. An acronym (`US`, `IT`) never is."""
    return word.lower().replace("’", "'") in stop and not (len(word) > 1 and word.isupper())


@lru_cache(maxsize=1 << 16)
def stem(word: str, language: Language) -> str:
    """Return the stem of a word. Words with digits, and in scripts other than Latin and Korean, are unchanged."""
    base = word.replace("’", "'").removesuffix("'s")
    if len(base) > 40 or not base.isalpha():
        return base
    return korean_stem(str(_stemmer(language).stemWord(base)).translate(UMLAUTS))


@lru_cache(maxsize=3)
def _stemmer(language: Language) -> "Stemmer.Stemmer":
    return Stemmer.Stemmer(language, 0)  # `stem` caches
