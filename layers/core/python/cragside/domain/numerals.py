"""Numbers as English, German and French words."""

_GERMAN_ORDINALS = (
    *("erst", "zweit", "dritt", "viert", "fünft", "sechst", "siebt", "acht", "neunt", "zehnt", "elft", "zwölft"),
    *("dreizehnt", "vierzehnt", "fünfzehnt", "sechzehnt", "siebzehnt", "achtzehnt", "neunzehnt", "zwanzigst"),
)
_FRENCH = "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"


def _counted(words: str, *, first: int = 1, step: int = 1) -> dict[str, int]:
    return {word: first + step * place for place, word in enumerate(words.split())}


CARDINALS = {
    **_counted(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen"
    ),
    **_counted("twenty thirty forty fifty sixty seventy eighty ninety", first=20, step=10),
    **_counted(
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
        "achtzehn neunzehn"
    ),
    **_counted("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig", first=20, step=10),
    **_counted(f"un {_FRENCH}"),
    **_counted("vingt trente quarante cinquante soixante", first=20, step=10),
}
ORDINALS = {
    **_counted(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
    ),
    **{f"{word}{end}": number for number, word in enumerate(_GERMAN_ORDINALS, 1) for end in ("e", "en", "er", "es")},
    "premier": 1,
}
# Days of a month: English and German count them in ordinals alone ("one may ask"), French but the first in cardinals.
DAYS = ORDINALS | _counted(_FRENCH, first=2)
