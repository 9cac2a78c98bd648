"""The words that show a question about several things, in English, German and French."""

from cragside.adapters.embedded.grammar import AND, ARTICLES, FRENCH_ARTICLES, OR, PREPOSITIONS, listed

_JOINS = AND | OR
_VERSUS = listed("vs vs. versus gegenüber contra")
# What precedes the second of two things that are compared.
_COMPARING = (
    "compared with", "compared to", "in comparison with", "in comparison to", "as opposed to", "rather than",
    "instead of", "im vergleich zu", "im vergleich zur", "im vergleich zum", "verglichen mit", "im gegensatz zu",
    "par rapport à", "par rapport au", "par rapport aux", "comparé à", "comparée à", "plutôt que",
)  # fmt: skip
# "Compare A with B", "the difference between A and B".
_COMPARE = listed("""
compare comparing comparison difference differences vergleiche vergleich vergleichen unterschied unterschiede comparer
comparez comparaison différence différences
""")
_WITH = listed("with to mit avec à")
_THAN = listed("than als que")
_COMPARATIVES = listed("more less mehr weniger plus moins")
# "From 2024 to 2025", "between May and July". Only of dates and codes: a ferry from one town to another is one ferry.
_FROM, _TO = listed("from von vom de du depuis seit"), listed("to bis auf zu à au")
_BETWEEN = listed("between zwischen entre")
# "Prices of kestrel and heron" are two prices.
_OF_EACH = listed("of for von für de pour")
# They precede a thing.
_OWNERS = listed("our my your his her their unser unsere unseren unserem meine mein notre nos mon ma mes")
_LEADS = ARTICLES | FRENCH_ARTICLES | PREPOSITIONS | _OWNERS | listed("this that celui celle ceux")
# They ask for all of something, wherever they stand.
_EVERYTHING = listed("""
everything both overview sämtliche sämtlichen beide beiden auflisten auflistung übersicht toutes énumère énumérer quels
quelles
""")
# They ask for all of something where that follows: "all boats", "all the boats", "a list of boats".
_GERMAN_ALL = listed("alle allen aller")
_ALL = _GERMAN_ALL | listed("all tous")
_LIST = listed("list lists liste lister listez")
_OF = listed("of all von aller alle des der de")
_ENGLISH_WHICH, _GERMAN_WHICH = listed("which what"), listed("welche")
_PLURAL_VERBS = listed("sind gibt")
# Without one of these words a question is about one thing.
_SIGNS = (
    _JOINS | _VERSUS | _WITH | _THAN | _TO | _EVERYTHING | _ALL | _LIST | _ENGLISH_WHICH | _GERMAN_WHICH
    | frozenset(phrase.split(" ", 1)[0] for phrase in _COMPARING)
)  # fmt: skip
