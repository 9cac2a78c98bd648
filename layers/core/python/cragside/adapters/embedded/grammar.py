"""Words of grammar in English, German and French, as they are written, in lower case.

Lists of a narrower use are beside their users: `part_words`, `follow_up_words`, `answer_words`. Words that say nothing
about a subject are in `stopwords`.
"""


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
