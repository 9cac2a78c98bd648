"""The words that show a question about several things, in English, German and French."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


AND = _words("and & und sowie et")
OR = _words("or oder ou bzw bzw.")
JOINS = AND | OR
VERSUS = _words("vs vs. versus gegenüber contra")
# What precedes the second of two things that are compared.
COMPARING = (
    "compared with", "compared to", "in comparison with", "in comparison to", "as opposed to", "rather than",
    "instead of", "im vergleich zu", "im vergleich zur", "im vergleich zum", "verglichen mit", "im gegensatz zu",
    "par rapport à", "par rapport au", "par rapport aux", "comparé à", "comparée à", "plutôt que",
)  # fmt: skip
# "Compare A with B", "the difference between A and B".
COMPARE = _words("""
compare comparing comparison difference differences vergleiche vergleich vergleichen unterschied unterschiede comparer
comparez comparaison différence différences
""")
WITH = _words("with to mit avec à")
THAN = _words("than als que")
COMPARATIVES = _words("more less mehr weniger plus moins")
# "From 2024 to 2025", "between May and July". Only of dates and codes: a ferry from one town to another is one ferry.
FROM, TO = _words("from von vom de du depuis seit"), _words("to bis auf zu à au")
BETWEEN = _words("between zwischen entre")
# "Prices of kestrel and heron" are two prices.
OF_EACH = _words("of for von für de pour")
# They precede a thing.
LEADS = _words("""
the a an our my your his her their this that at in on for of from with by to under near der die das den dem des
ein eine einen einem einer unser unsere unseren unserem meine mein mit bei im am für von vom zum zur auf aus
nach über unter le la les un une du au aux notre nos mon ma mes pour avec dans chez en de à sur sous par celui
celle ceux l' d'
""")
INTERROGATIVES = _words("""
who whom whose what which when where why how wer wen wem wessen was welche welcher welches welchen wann wo woher wohin
warum wie wieviel qui quoi que quel quelle quels quelles quand où pourquoi comment combien
""")
# They ask for all of something, wherever they stand.
EVERYTHING = _words("""
everything both overview sämtliche sämtlichen beide beiden auflisten auflistung übersicht toutes énumère énumérer quels
quelles
""")
# They ask for all of something where that follows: "all boats", "all the boats", "a list of boats".
ALL = _words("all alle allen aller tous")
GERMAN_ALL = _words("alle allen aller")
LIST = _words("list lists liste lister listez")
OF = _words("of all von aller alle des der de")
ENGLISH_WHICH, GERMAN_WHICH = _words("which what"), _words("welche")
PLURAL_VERBS = _words("sind gibt")
# Without one of these words a question is about one thing.
SIGNS = (
    JOINS | VERSUS | WITH | THAN | TO | EVERYTHING | ALL | GERMAN_ALL | LIST | ENGLISH_WHICH | GERMAN_WHICH
    | frozenset(phrase.split(" ", 1)[0] for phrase in COMPARING)
)  # fmt: skip
