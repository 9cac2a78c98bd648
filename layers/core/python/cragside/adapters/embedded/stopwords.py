"""Words without a topic, in English and German."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


ENGLISH = _words("""
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

GERMAN = _words("""
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
OTHER = _words("""
le la les un une des du de et est sont qui que quoi quel quelle où quand comment pourquoi dans sur pour avec par ce
cette el los las una unos y es son qué quién cuál dónde cuándo cómo por para con en del al se su il lo gli uno e è
sono che chi quale dove quando come perché di da nel della o os as um uma é são quem qual onde como porque em no na
do dos das het een en zijn wie wat waar wanneer hoe waarom van op met voor что кто где когда как почему какой какая
какое какие такое это и в на с по из для не он она они его её ما من هو هي أين متى كيف لماذا هل في على إلى عن
""")

# Polite phrases and other wording of a request. They are without a topic in questions, but not in passages.
SCAFFOLDING = _words("""
please kindly thanks thank hello hi hey dear tell explain describe show give find know want need help wondering wonder
understand summarize summarise list name mean means meaning question answer details information info like really
actually basically exactly maybe perhaps anyone someone something
bitte danke hallo erkläre erklär erklären sag sage sagen zeig zeige nenne beschreibe beschreib hilf wissen möchte
würde frage antwort bedeutet eigentlich vielleicht jemand genau
""")

STOPWORDS = ENGLISH | GERMAN

# Words that tell statements from questions and titles (`statements`).
QUESTION_WORDS = _words("""
who whom whose what when where which why how wer was wann wo welche welcher welches warum wie wem wen qui que quoi quel
quelle quand où comment pourquoi combien
""")
VERBS = _words("""
am are be been can cannot could did do does had has have is may might must shall should was were will would isn't aren't
wasn't weren't can't couldn't don't doesn't didn't hasn't haven't won't it's that's there's he's she's i'm we're they're
ist sind war waren hat haben hatte wird werden wurde wurden kann können muss müssen soll est sont était ont peut doit
""")
# Words of titles and transcripts, which say nothing about their subject.
HEADING_WORDS = _words("""
article basics chapter contents edition faq faqs guide help home introduction notes overview page part section summary
topic tutorial website user assistant date q kapitel überblick einführung seite
""")
