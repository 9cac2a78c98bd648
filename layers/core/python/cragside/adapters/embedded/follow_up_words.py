"""The words that show a follow-up question, in English, German and French."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# They stand for a thing or a person of the turns before.
PRONOUNS = _words("""
it he him she her they them
er ihn ihm ihnen
il elle ils elles lui celui-ci celle-ci celui celle ceux cela ça -t-il -t-elle
""")
POSSESSIVES = _words("""
its his her their hers theirs
seine seinen seinem seiner seines ihre ihren ihrem ihrer ihres dessen deren
""")
# French words that mean something else in English or German.
FRENCH_POSSESSIVES = _words("son sa ses leur leurs")
FRENCH = _words("quel quelle quels quelles où quand comment pourquoi qui quoi est-ce est et combien à c'est qu'est-ce")
# They point back when they precede a noun, or stand alone.
DEMONSTRATIVES = _words("""
this that these those dieser diese dieses diesem diesen jener jene jenes ce cet cette ces
""")
# Alone at the end they point back: "how do I get there?", "und wie hoch ist der?"
LAST_WORDS = _words("""
there one ones that this those these such so otherwise instead too der die das den dem dort davon damit dafür daran
darin darauf darüber dazu denn sonst là ça autre y
""")
WITHIN = _words("""
latter former same dort davon damit dafür daran darin darauf darüber dazu dabei letztere letzterer erstere erster
""")
ANOTHER = _words("other others andere anderen anderer anderes autre autres")
# "This year" needs no conversation.
NOW = _words("""
year month week day morning evening century time way kind sort case jahr monat woche tag mal jahrhundert année mois
semaine jour fois
""")
OPENERS = _words("and but or also then so und aber oder auch dann et mais ou alors")
OPENING_PHRASES = (
    "what about", "how about", "and what about", "and how about", "same for", "the same for", "was ist mit",
    "und was ist mit", "wie sieht es mit", "wie sieht es bei", "wie steht es mit", "wie ist es mit", "wie ist es bei",
    "et pour", "et que dire de", "qu'en est-il de", "qu'en est-il du",
)  # fmt: skip
PREPOSITIONS = _words("""
in on at for with without from to by since until of under over during after before near im am für mit ohne von zu bei
seit bis nach vor unter über aus auf um pour avec sans dans depuis à en
""")
INTERROGATIVES = _words("""
who whom whose what which when where why how wer wen wem was welche welcher welches wann wo woher wohin warum wieso
weshalb wie wieviel qui que quoi quel quelle quand où pourquoi comment combien
""")
# It stands for nothing: "is it possible to ...", "wie viele Arten gibt es".
AFTER_EXPLETIVE = _words("""
possible true legal safe necessary better worth okay ok important allowed normal rain rains snow take takes took cost
costs matter mean means time
""")
WEATHER = _words("rain rains snow")
EXPLETIVE_NEIGHBOURS = _words("gibt gab geht ging regnet schneit y faut faudrait fait possible heißt")
# "The first bridge and its rotor": what follows a clause can refer to what precedes it.
CLAUSES = _words("""
and but when if because while before after where that which who or so until since though und wenn weil aber als bevor
nachdem dass ob et mais quand si parce où que
""")
DETERMINERS = _words("""
a an the some every each all ein eine einen einem einer eines der die das den dem des le la les un une des du
""")
PERSONAL = _words("he him his she her they them er ihn ihm seine ihre il elle lui")
WHO = _words("who wer qui whom")
# Without a topic of their own in a question.
GENERIC = _words("""
work works working make makes made use uses used using call called happen happens happened come comes came look looks
live lives lived long wide tall high deep big large small old heavy fast far many much often first last build built
write wrote written invent invented discover discovered measure measured begin began start started open opened mean
find show tell cost costs need needs weigh weighs eat eats people different between good best new one ones thing things
groß hoch breit lang tief alt schwer schnell weit viele viel oft gebaut erfunden heißt genannt funktioniert macht
lebt leben wurde kostet braucht grand grande haut haute long longue large profond vieux combien fait
""")
