"""Splits texts into words and stems for lexical matching, and lists words of grammar and words without a topic."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal
from unicodedata import normalize

import Stemmer


def listed(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


FRENCH_INTERROGATIVES = listed("qui que quoi quel quelle quels quelles quand où pourquoi comment combien")
INTERROGATIVES = FRENCH_INTERROGATIVES | listed("""
who whom whose what which when where why how
wer wen wem wessen was welche welcher welches welchen welchem wann wo woher wohin warum wieso weshalb wie wieviel
""")
AND = listed("and & und sowie et")
OR = listed("or oder ou bzw bzw.")
BUT = listed("but aber mais")
ARTICLES = listed("the a an der die das den dem des ein eine einen einem einer eines")
FRENCH_ARTICLES = listed("le la les l' un une des du au aux d'")
PREPOSITIONS = listed("""
in on at of for from with without by to under over near since until during after before
mit ohne bei beim im am für von vom zu zum zur auf aus nach vor seit bis über unter um
pour avec sans chez dans depuis en de à sur sous par
""")
# Verbs of a sentence, which neither a title nor a question without a question mark has behind its first word.
VERBS = listed("""
am are be been can cannot could did do does had has have is may might must shall should was were will would isn't aren't
wasn't weren't can't couldn't don't doesn't didn't hasn't haven't won't it's that's there's he's she's i'm we're they're
ist sind war waren hat haben hatte wird werden wurde wurden kann können muss müssen soll est sont était ont peut doit
""")


# The index leaves out the words of ENGLISH, GERMAN and OTHER (`words.terms`): another word there is another format of
# stores. The longer lists of other languages are for the grader, and to tell the languages apart.
ENGLISH = listed("""
a about above after again against all also am an and any are aren't as at be became because become been before being
below between both but by can can't could couldn't did didn't do does doesn't doing don't done down during each
either else ever every few for from further get gets given go goes got had hadn't has hasn't have haven't having he
her here hers herself him himself his how however i i'd i'll i'm i've if in into is isn't it it's its itself just
let let's may me might mine more most much must my myself neither no nor not now of off on once one only onto or
other our ours ourselves out over own per shall she should shouldn't since so some such than that that's the their
theirs them themselves then there there's these they they're this those through thus to too under until up upon us
very via was wasn't we were weren't what what's when where whether which while who who's whom whose why will with
within without won't would wouldn't yet you you're your yours yourself yourselves
""")

GERMAN = listed("""
aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin bis bist da dabei dadurch
dafür damit dann daran darauf darin das dass davon dazu dein deine dem den denn der deren des dessen die dies diese
diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es etwa etwas euch euer eure für
gegen gewesen gibt hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im
in indem ins ist ja jede jedem jeden jeder jedes jene jener kann kein keine keinem keinen keiner können könnte machen
man manche mehr mein meine mich mir mit muss müssen nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem
seinen seiner seit sich sie sind so solche soll sollen sollte sondern sonst um und uns unser unter viel vom von vor wann
war waren warum was weil welche welchem welchen welcher welches wenn wer wem wen werde werden wessen weshalb wie wieder
wieso wieviel will wir wird wirst wo wobei wofür wohin womit woraus worin worüber wurde wurden während zu zum zur zwar
zwischen über
""")

# The most frequent function words of French, Spanish, Italian, Portuguese, Dutch, Russian and Arabic. Some have a
# meaning in English or German, so they count only in texts of neither language.
OTHER = listed("""
le la les un une des du de et est sont qui que quoi quel quelle où quand comment pourquoi dans sur pour avec par ce
cette el los las una unos y es son qué quién cuál dónde cuándo cómo por para con en del al se su il lo gli uno e è
sono che chi quale dove quando come perché di da nel della o os as um uma é são quem qual onde como porque em no na
do dos das het een en zijn wie wat waar wanneer hoe waarom van op met voor что кто где когда как почему какой какая
какое какие такое это и в на с по из для не он она они его её ما من هو هي أين متى كيف لماذا هل في على إلى عن
""")

# Polite phrases and other wording of a request. They are without a topic in questions, but not in passages.
SCAFFOLDING = listed("""
please kindly thanks thank hello hi hey dear tell explain describe show give find know want need help wondering wonder
understand summarize summarise list name mean means meaning question answer details information info like really
actually basically exactly maybe perhaps anyone someone something
bitte danke hallo erkläre erklär erklären sag sage sagen zeig zeige nenne beschreibe beschreib hilf wissen möchte
würde frage antwort bedeutet eigentlich vielleicht jemand genau
""")

# Without the accents, as `words` gives them. Some are also English or German words: car, on, son.
FRENCH = listed("""
a afin ai aie ainsi alors apres as assez au aucun aucune aujourd'hui auquel aura aussi autant autre autres aux
auxquels avaient avait avant avec avoir beaucoup bien c car ce ceci cela celle celles celui cent cependant ces cet
cette ceux chaque chez combien comme comment d dans de depuis des desquels deux devait doit doivent donc dont du
duquel durant elle elles en encore entre es est et etaient etait etant ete etre eu eurent eut eux faire fait faut font
fur furent fut hors ici il ils j je jusque l la laquelle le lequel les lesquelles lesquels leur leurs lors lorsque lui
m ma mais malgre me meme memes mes mieux moi moins mon n ne ni non nos notre nous on ont or ou par parce parmi pas
pendant peu peut peuvent plus plusieurs pour pourquoi pourtant pouvait presque pu puis puisque qu quand quant que quel
quelle quelles quelque quelques quels qui quoi s sa sans se selon sera seront ses si sien sinon soi soient soit son
sont sous sur t ta tandis tant te tel telle tels tes toi ton toujours tous tout toute toutefois toutes tres trop tu un
une vers veut voici voila vos votre vous y
""")

# Frequent words of questions, beside the function words of the index, whose absence says nothing.
GERMAN_ASKING = listed("""
ab außerhalb beide beiden bereits bitte dabei damals danach darf darfst darum davor denn durfte dürfen dürfte
ebenfalls eigentlich etwa gab gehabt genau gern gerne gewesen heraus herein herunter heute hinaus hinein hinunter
höchstens immer innerhalb jedoch konnte konnten laut ließ lässt mag mal mindestens musste mussten möchte möchten
müsste nahe obwohl oft schon selbst solchen solcher sollst sollten ums ungefähr viel viele vielen vieler vieles
wieviel wieviele wodurch wogegen wohl wollen wollte woran worauf worden worum wovon überhaupt
""")
FRENCH_ASKING = listed("""
ans appelait appelle deja devrait dire dois doivent environ exactement existe facon faire faisait fait faite faites
generalement genre lieu maniere nomme passe pourrait pouvait pouvez precisement sert servait servir signifie sorte
souvent trouve trouver veut
""")

STOPWORDS = ENGLISH | GERMAN

# Function words of Spanish, Italian, Portuguese and Dutch, likewise without accents: these are not taken for French.
NEIGHBOURS = listed("""
a aan agli ai al alla alle anche ao aos as bij che chi ci com come como con cosa cual cuales cuando cuanta cuantas
cuanto cuantos da dal dalla dan das dat de degli dei del della delle dello den der desde deze di die dit do donde dopo
dos dove e ed een el em en entre er era eran erano es esa ese esta estas este estos foi foram fra fue fueron gli ha
han hasta hay hebben heeft het hij hoe il in is la las lo los ma maar mais mas met muy na naar nao nas ne nei nel
nella nelle niet no nog non nos o of om onde ook op os ou para pela pelo per perche pero piu por porque prima quais
qual quale quali quando quante quanti quanto que quem questa questo quien quienes sao se seu seus si sin sobre son
sono stata stato su sua suas sul sulla sus te tem tot tra u uit um uma umas un una unas unos uns van voor waar waarom
wanneer was wat welke werd wie worden wordt y ya ze zijn
""")

# Words of titles and transcripts, which say nothing about their subject.
HEADING_WORDS = listed("""
article basics chapter contents edition faq faqs guide help home introduction notes overview page part section summary
topic tutorial website user assistant date q kapitel überblick einführung seite
""")


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
    """The plain letters of accented Latin letters."""
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
    """The words without a topic in the language of a text, which is given as the result of `words`."""
    if language_of(found) == "german":
        return GERMAN
    return ENGLISH if any(word in ENGLISH for word in found) else ENGLISH | OTHER


def terms(text: str) -> list[str]:
    """The stems of words without function words, in order, with repetitions.

    Both sides of a comparison use it, so equal words of a question and a passage give equal terms. A question with
    cached words takes 0.05 ms. A text as German as it is English ("Was fressen Raupen?") gives the stems of both.
    """
    found = words(text)
    known = stems(found, language_of(found))
    if 0 < sum(map(GERMAN.__contains__, found)) == sum(map(ENGLISH.__contains__, found)):
        known += [term for term in stems(found, "german") if term not in known]
    return known


def stems(found: list[str], language: Language, stop: frozenset[str] | None = None) -> list[str]:
    """The stems of words (from `words`) without function words, by default those of their language."""
    if stop is None:
        stop = GERMAN if language == "german" else function_words(found)
    return [stem(word, language) for word in found if word not in stop and word not in _CLITICS]


def is_filler(word: str, stop: frozenset[str]) -> bool:
    """Tell if a word, as written in its text, is one of `stop`. An acronym (`US`, `IT`) never is."""
    return word.lower().replace("’", "'") in stop and not (len(word) > 1 and word.isupper())


@lru_cache(maxsize=1 << 16)
def stem(word: str, language: Language) -> str:
    """The stem of a word. Words with digits, and in scripts other than Latin and Korean, are unchanged."""
    base = word.replace("’", "'").removesuffix("'s")
    if len(base) > 40 or not base.isalpha():
        return base
    return korean_stem(str(_stemmer(language).stemWord(base)).translate(UMLAUTS))


@lru_cache(maxsize=3)
def _stemmer(language: Language) -> "Stemmer.Stemmer":
    return Stemmer.Stemmer(language, 0)  # `stem` caches
