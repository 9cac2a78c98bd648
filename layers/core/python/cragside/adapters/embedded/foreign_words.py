"""Words of German and French texts that say little about their subject, and forms that no rule of endings relates."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Without the accents, as `words` gives them. Some are also English or German words.
FRENCH = _words("""
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

# Function words of Spanish, Italian, Portuguese and Dutch, likewise without accents: these are not taken for French.
NEIGHBOURS = _words("""
a aan agli ai al alla alle anche ao aos as bij che chi ci com come como con cosa cual cuales cuando cuanta cuantas
cuanto cuantos da dal dalla dan das dat de degli dei del della delle dello den der desde deze di die dit do donde dopo
dos dove e ed een el em en entre er era eran erano es esa ese esta estas este estos foi foram fra fue fueron gli ha
han hasta hay hebben heeft het hij hoe il in is la las lo los ma maar mais mas met muy na naar nao nas ne nei nel
nella nelle niet no nog non nos o of om onde ook op os ou para pela pelo per perche pero piu por porque prima quais
qual quale quali quando quante quanti quanto que quem questa questo quien quienes sao se seu seus si sin sobre son
sono stata stato su sua suas sul sulla sus te tem tot tra u uit um uma umas un una unas unos uns van voor waar waarom
wanneer was wat welke werd wie worden wordt y ya ze zijn
""")

# Frequent words of questions, beside the function words of the index, whose absence says nothing.
GERMAN_ASKING = _words("""
ab außerhalb beide beiden bereits bitte dabei damals danach darf darfst darum davor denn durfte dürfen dürfte
ebenfalls eigentlich etwa gab gehabt genau gern gerne gewesen heraus herein herunter heute hinaus hinein hinunter
höchstens immer innerhalb jedoch konnte konnten laut ließ lässt mag mal mindestens musste mussten möchte möchten
müsste nahe obwohl oft schon selbst solchen solcher sollst sollten ums ungefähr viel viele vielen vieler vieles
wieviel wieviele wodurch wogegen wohl wollen wollte woran worauf worden worum wovon überhaupt
""")
FRENCH_ASKING = _words("""
ans appelait appelle deja devrait dire dois doivent environ exactement existe facon faire faisait fait faite faites
generalement genre lieu maniere nomme passe pourrait pouvait pouvez precisement sert servait servir signifie sorte
souvent trouve trouver veut
""")

# Frequent content words: their absence says less than that of others.
GERMAN_COMMON = _words("""
alt alte alten ander art arten aussehen baut bedeutet begann beginnen beginnt bekam bekommen bekommt benutzen benutzt
besonders besser bestehen besteht bezeichnet bleiben bleibt brachte brauche brauchen braucht bringen bringt dauer
dauern dauert dauerte eigene einfach ende enden endet endete enthält entstand entstanden entstehen entsteht erhalten
erhält erst erste ersten erster erstmals fahren fand finden findet fing folge form funktioniert fährt führen führt
führte ganz geben gefährlich gehen geht gehören gehört genannt geschah geschieht gilt ging groß große großen grund
größe größte gut gute halten hause heißen heißt hergestellt herstellen hieß hoch hohe hält höchste höhe jahr jahre
jahren kam kamen kennt klein kleine kommen kommt kosten kostet kostete land lang lange lassen leben lebt legen legt
letzte letzten liegen liegt länge länger machen macht meisten mensch menschen minuten monat monate möglich nahm name
namen nehmen nennen nennt nennung neu neue nimmt nutzen nutzt ort passiert passierte person personen problem richtig
rolle schnell schneller sehen seite setzt sieht sitzt spielt spielte stadt stammt stand stark stehen steht stellen
stunde stunden tag tage teil tief tiefe tun unterschied ursache verschiedene verschiedenen verwenden verwendet wahr
weit weiter weniger wichtig wichtige wichtigsten wirkt woche wochen wohnen wort zahl zeit ziel zuerst zuletzt zweck
zweiten
""")
FRENCH_COMMON = _words("""
age ancien ancienne annee annees arrive arriver beau besoin bon bonne but cas cause causes celebre chose choses
commence commencer compte compter consiste contenir contient cote cours cout coutait coute couter date debut depart
dernier derniere devenir devenu devient difference different differents difficile donne donner dure duree durer effet
empeche endroit entraine etape etat fin fois forme forment former formes francais france garde grand grande grandes
grands gros grosse haut haute hauteur heure heures homme hommes important importante jeune jeunes jour jours large
lettre loin long longue longueur mal matiere meilleur meilleure met mettre mis mise mois moment monde moyen moyenne
nom nombre nouveau nouvelle objet obtient occupe origine ouvert part partie partir pays permet permettre personne
personnes petit petite petits place point possede possible pouvoir premier premiere prend prendre pres principal
principale principaux prix probleme procede produire produit quantite raison reste rester resultat role semaine
semaines seul seule sorte suite taille temps tenir terme tient tire type usage utilise utiliser utilises venir venus
vie vient ville villes vit vivent voir vrai
""")

# The stems of German strong verbs, that of the infinitive first; a comma ends each verb.
_STRONG = """
back buk, bieg bog, biet bot, bind band bund, brech brich brach broch, brenn brannt brann, bring bracht, denk
dach dacht, dring drang drung, find fand fund, flieg flog, flieh floh, fliess floss, fress friss frass, frier fror,
geb gib gab, geh ging gang, gelt gilt galt golt, gewinn gewann gewonn, giess goss, grab grub, greif griff, halt hielt,
helf hilf half holf, kenn kann, kling klang klung, komm kam, lad lud, lauf lief, les lies las, lieg lag leg, lieh
leih, mess miss mass, nehm nimm nahm nomm, nenn nann, pfeif pfiff, reiss riss, ruf rief, schaff schuf, scheid schied,
schein schien, schiess schoss, schlaf schlief, schlag schlug, schliess schloss, schmelz schmilz schmolz, schneid
schnitt, schrei schrie, schreib schrieb, schwimm schwamm schwomm, seh sieh sah, send sand, sing sang sung, sink sank
sunk, sitz sass sess, sprech sprich sprach sproch, spring sprang sprung, stech stich stach stoch, steh stand, steig
stieg, sterb stirb starb storb, stoss stiess, streich strich, trag trug, treff triff traf troff, treib trieb, tret
tritt trat, trink trank trunk, verlier verlor, wachs wuchs, wasch wusch, weis wies, werf wirf warf worf, wieg wog,
wiss weiss wuss, zieh zog, zwing zwang zwung
"""
STRONG_VERBS = {form: verb.split()[0] for verb in _STRONG.split(",") for form in verb.split()}
