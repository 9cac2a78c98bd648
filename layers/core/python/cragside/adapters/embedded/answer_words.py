"""Words with which English, German and French questions ask for figures and dates, and with which texts state them."""

import re

from cragside.adapters.embedded.grammar import listed

# Words of one question lie so near to each other. Without a bound, a long text would take long.
_NEAR = ".{0,80}"
_START = r"(?:^|\b(?:in|for|of|at|about|after|by|and|und|et|für|nach) )"
_PRICES = r"price|costs?|salary|wages?|rent|fee|budget|preis|kosten|gehalt|miete|gebühr|prix|salaire|loyer"
_LENGTHS = r"height|width|thickness|höhe|breite|dicke|hauteur|largeur|épaisseur"
_WEIGHTS = r"weight|gewicht|poids"
_SPEEDS = r"(?:top |maximum |max )?speed|(?:höchst)?geschwindigkeit|vitesse"
_SPANS = r"length|länge|longueur|duration|dauer|durée"
_FIGURES = (
    r"(?:serial|account|invoice|contract|order)[ -]number|percentage|anzahl|nombre"
    r"|vertragsnummer|kontonummer"
)
_PAYING = (
    r"costs?|earns?|earned|pay|pays|paid|charged?|spent|spend|kostete?n?|gekostet|verdiente?n?|verdient|bezahlt|zahlen"
    r"|zahlt|gezahlt|coûte|coûtait|coûté|paie|payé|gagne"
)
_BILLS = r"\w{0,30}(?:miete|rechnung|gehalt|lohn|gebühr|beitrag|preis|kosten|rabatt|budget)"

ASKING_FOR_MONEY = re.compile(
    rf"{_START}(?:how much|wie ?viel|combien)\b(?! of\b){_NEAR}\b(?:{_PAYING})\b"
    rf"|{_START}what (?:did|does|do|will|would) {_NEAR}\b(?:cost|earn|charge|pay for)\b"
    rf"|^was (?:kostete?n?\b|(?:haben|hat)\b{_NEAR}\bgekostet\b)"
    rf"|\bhow expensive\b|\bwie teuer\b|\bwie hoch\b{_NEAR}\b{_BILLS}"
)
_IS = r"(?:is|are|was|were|can|does|do|did|will|ist|sind|war|waren|wird|werden|darf|dürfen|kann)"
ASKING_FOR_A_LENGTH = re.compile(rf"{_START}(?:how (?:tall|wide|thick|high|deep)|wie (?:breit|dick|tief)) {_IS}\b")
ASKING_FOR_A_SPAN = re.compile(rf"{_START}(?:how (?:long|far)|wie (?:lang|lange|weit)) {_IS}\b")
ASKING_FOR_A_WEIGHT = re.compile(
    rf"{_START}(?:how heavy|wie schwer) {_IS}\b|\bhow much {_NEAR}\bweighs?\b|\bwas wiegt\b"
)
ASKING_FOR_AN_AGE = re.compile(rf"{_START}(?:how old|wie alt) {_IS}\b|\bquel âge\b")
ASKING_FOR_A_SPEED = re.compile(rf"{_START}(?:how fast|wie schnell) {_IS}\b")
ASKING_FOR_A_VOLUME = re.compile(
    rf"{_START}(?:how many|wie ?viele?|combien de) (?:litres?|liters?|gallons?|litern?|pints?)\b"
)
ASKING_FOR_A_PHONE = re.compile(
    r"\b(?:tele)?phone number|\bmobile number|\b(?:telefon|handy|ruf|mobil)nummer|\bnuméro de (?:téléphone|portable)"
)
ASKING_FOR_AN_AMOUNT = re.compile(
    rf"{_START}(?:how (?:many|much|long|far|old|big|large|heavy|often|deep|fast)\b"
    r"|wie ?(?:viele?n?|lange?|alt|gro(?:ß|ss)|weit|schwer|oft|tief|schnell|hoch)\b|combien\b)"
)
ASKING_FOR_A_DATE = re.compile(
    r"(?:^|\b(?:until|till|since|by|from|and|bis|seit|ab|depuis) )(?:when|wann|quand)\b"
    r"|\b(?:(?:what|which) (?:year|date|day|month|time|century)|welche[mnrs]? (?:jahr|tag|datum|monat|uhrzeit)"
    r"|quel(?:le)? (?:année|jour|date|mois|heure))\b"
)
# "What is the price of ...", but not "what explains the high price of ...".
WHAT_IS_THE = (
    r"^(?:what|which|was|welche[rsmn]?|quel(?:le)?)(?:'s)?(?: (?:is|was|are|were|ist|war|est))?"
    r"(?: (?:the|our|my|a|der|die|das|le|la))?(?: \w+)?? "
)
NAMES_OF_FIGURES = (_PRICES, _LENGTHS, _SPANS, _WEIGHTS, _SPEEDS, _FIGURES)

DATES = listed("""
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
mon tue wed thu fri sat sun montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag montags dienstags
mittwochs donnerstags freitags samstags sonntags lundi mardi mercredi jeudi vendredi samedi dimanche today tomorrow
yesterday heute morgen gestern spring summer autumn winter frühling herbst sommer printemps ete automne hiver century
centuries season week weekend month year years day daily weekly noon midnight morning evening afternoon night easter
christmas jahr jahre jahren jahrhundert tag tage woche monat abend mittag nacht ostern weihnachten siecle annee an ans
jour mois semaine before after during while once until since immediately later end beginning start vor während bis seit
sobald apres avant pendant lors
""")
AMOUNTS = listed("""
half twice once dozen hundred hundreds thousand thousands million millions billion few several many no none unknown
rare free zero single couple both every each annually yearly monthly weekly daily hours minutes years halb hälfte
hundert tausend millionen milliarden keine kein kostenlos viele wenige täglich jährlich cent cents mille plusieurs
gratuit gratuitement dizaine douzaine
""")
GERMAN_AMOUNT = re.compile(r"\w{0,30}(?:zig|ßig|hundert|tausend|fache?)")
CURRENCIES = listed("""
eur euro euros dollar dollars usd gbp pound pounds pence chf franken francs franc cent cents ct yen free kostenlos
gratuit gratuitement
""")
# A currency's sign, a figure such as 1,500 or 12.50, or the name of a price before a figure, as a table has it.
MONEY = re.compile(rf"[€$£¥]|\b[0-9]{{1,3}}[.,][0-9]{{2,3}}\b|(?:{_PRICES})\b\W*(?:\w+\W+){{0,2}}[0-9]")
LENGTH_UNITS = listed("""
mm cm m km nm ft feet foot inch inches metre metres meter meters metern mile miles yard yards millimeter zentimeter
kilometer millimetre millimetres centimetre centimetres kilometre kilometres centimeters millimeters kilometers
""")
TIME_UNITS = listed("""
second seconds minute minutes hour hours day days week weeks month months year years decade decades century centuries
sec min mins h hr hrs s sekunde sekunden minuten stunde stunden tag tage tagen woche wochen monat monate monaten jahr
jahre jahren jahrhundert seconde secondes heure heures jour jours semaine semaines mois an ans annee annees siecle
overnight forever daily weekly monthly yearly annual unlimited
""")
WEIGHT_UNITS = listed("""
g kg t mg lb lbs oz gram grams gramme grammes kilo kilos kilogram kilograms ton tons tonne tonnes pound pounds ounce
ounces stone gramm kilogramm tonnen pfund zentner tonne kilogrammes
""")
AGE_WORDS = TIME_UNITS | listed("""
old aged age born birthday built founded since alt alter geboren geburtstag gebaut gegründet seit baujahr age ne nee
""")
SPEED_UNITS = listed("kmh kph mph kn knot knots rpm knoten stundenkilometer noeuds mbit gbit kbit mbps gbps mb gb")
VOLUME_UNITS = listed("""
l ml cl hl litre litres liter liters litern gallon gallons pint pints millilitre millilitres milliliter m3 cubic
""")
# A figure with its unit in one word.
WITH_A_UNIT = re.compile(r"[0-9][0-9.,]{0,20}([a-z]{1,3}[0-9]?)")
PHONE = re.compile(r"\+?[0-9](?:[ ()/.–-]{0,3}[0-9]){4,20}")
# A time of day.
TIME = re.compile(r"\b[0-9]{1,2}(?:[:.h][0-9]{2}\b| ?(?:am|pm|a\.m|p\.m|o'clock|uhr|h|heures?)\b)")
YEAR_OR_DECADE = re.compile(r"(?:1[0-9]|20)[0-9]{2}s?|[0-9]{1,2}(?:st|nd|rd|th)|[1-9]0s")
YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}")
