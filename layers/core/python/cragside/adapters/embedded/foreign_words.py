"""German and French words that say little about a subject, and forms that no rule of endings relates."""

from cragside.adapters.embedded.grammar import listed

# Frequent content words: their absence says less than that of others.
GERMAN_COMMON = listed("""
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
FRENCH_COMMON = listed("""
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
