"""Words without a topic."""

from cragside.adapters.embedded.grammar import listed

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
