"""The words that show a follow-up question, in English, German and French."""

from cragside.adapters.embedded.grammar import AND, ARTICLES, BUT, FRENCH_ARTICLES, FRENCH_INTERROGATIVES, OR, listed

# They stand for a thing or a person of the turns before.
_PRONOUNS = listed("""
it he him she her they them
er ihn ihm ihnen
il elle ils elles lui celui-ci celle-ci celui celle ceux cela ça
""")
_POSSESSIVES = listed("""
its his her their hers theirs
seine seinen seinem seiner seines ihre ihren ihrem ihrer ihres dessen deren
""")
# French words that mean something else in English or German.
_FRENCH_POSSESSIVES = listed("son sa ses leur leurs")
_FRENCH = FRENCH_INTERROGATIVES | listed("est-ce est et à c'est qu'est-ce")
# They point back when they precede a noun, or stand alone.
_DEMONSTRATIVES = listed("""
this that these those dieser diese dieses diesem diesen jener jene jenes ce cet cette ces
""")
# They point back wherever they stand.
_WITHIN = listed("""
latter former same dort davon damit dafür daran darin darauf darüber dazu dabei letztere letzterer erstere erster
""")
# Alone at the end they point back: "how do I get there?", "und wie hoch ist der?"
_LAST_WORDS = listed("""
there one ones that this those these such so otherwise instead too der die das den dem denn sonst là ça autre y
""")
_ANOTHER = listed("other others andere anderen anderer anderes autre autres")
# "This year" needs no conversation.
_NOW = listed("""
year month week day morning evening century time way kind sort case jahr monat woche tag mal jahrhundert année mois
semaine jour fois
""")
_OPENERS = AND | OR | BUT | listed("also then so auch dann alors")
_OPENING_PHRASES = (
    "what about", "how about", "and what about", "and how about", "same for", "the same for", "was ist mit",
    "und was ist mit", "wie sieht es mit", "wie sieht es bei", "wie steht es mit", "wie ist es mit", "wie ist es bei",
    "et pour", "et que dire de", "qu'en est-il de", "qu'en est-il du",
)  # fmt: skip
# It stands for nothing: "is it possible to ...", "wie viele Arten gibt es".
_AFTER_EXPLETIVE = listed("""
possible true legal safe necessary better worth okay ok important allowed normal rain rains snow take takes took cost
costs matter mean means time
""")
_WEATHER = listed("rain rains snow")
_EXPLETIVE_NEIGHBOURS = listed("gibt gab geht ging regnet schneit y faut faudrait fait possible heißt")
# "The first bridge and its rotor": what follows a clause can refer to what precedes it.
_SUBORDINATE = listed("""
when if because while before after where that which who so until since though wenn weil als bevor nachdem dass ob quand
si parce où que
""")
_CLAUSES = AND | OR | BUT | _SUBORDINATE
_DETERMINERS = ARTICLES | FRENCH_ARTICLES | listed("some every each all")
_PERSONAL = listed("he him his she her they them er ihn ihm seine ihre il elle lui")
_WHO = listed("who wer qui whom")
# Without a topic of their own in a question.
_GENERIC = listed("""
work works working make makes made use uses used using call called happen happens happened come comes came look looks
live lives lived long wide tall high deep big large small old heavy fast far many much often first last build built
write wrote written invent invented discover discovered measure measured begin began start started open opened mean
find show tell cost costs need needs weigh weighs eat eats people different between good best new one ones thing things
groß hoch breit lang tief alt schwer schnell weit viele viel oft gebaut erfunden heißt genannt funktioniert macht
lebt leben wurde kostet braucht grand grande haut haute long longue large profond vieux combien fait
""")
