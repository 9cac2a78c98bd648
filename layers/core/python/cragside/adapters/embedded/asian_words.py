"""Reads words of Chinese, Japanese, Korean and Thai as the grader compares them."""

import re
from unicodedata import normalize

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
    """The question without its question words in these languages."""
    return text if text.isascii() else _ASKING.sub(" ", text)


def korean_stem(word: str) -> str:
    """A Korean word without its particle or ending; any other word as it is."""
    if not "가" <= word[-1:] <= "힣":
        return word
    verb, endings = _ENDING.subn("", normalize("NFD", word))
    if endings and (stem := normalize("NFC", _AUXILIARY.sub("", verb))):
        return stem
    shorter = _PARTICLE.sub("", word)
    return shorter if shorter != word else _SHORT_PARTICLE.sub("", word)
