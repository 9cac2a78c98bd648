"""Reports that differ in a name, a place, a number, a date and one fact, and questions about single ones."""

import random
from collections import Counter
from dataclasses import dataclass


def _split(words: str) -> list[str]:
    return words.split()


# So few of each that every word of a question stands in many reports: none of them alone leads to the right one.
_FIRST_NAMES = _split("Anna Bruno Clara David Elena Felix Greta Hugo Ines Jakob Karin Lukas Maria Niels Olga Paul")
_LAST_NAMES = _split("Adler Brandt Conrad Dorn Ebert Falk Graf Hahn Imhof Keller Lang Moser Orth Pohl Vogt Weber")
_PLACES = _split("Bamberg Bregenz Celle Coburg Fulda Gera Jena Kempten Lindau Passau Siegen Soest Trier Ulm")
_PUMPS = range(101, 119)  # none is the day of a date
_PARTS = (
    "main valve",
    "inlet filter",
    "pressure gauge",
    "drain cock",
    "motor bearing",
    "cooling fan",
    "float switch",
    "control cabinet",
    "sealing ring",
    "suction pipe",
)
_FATES = (
    "replaced",
    "cleaned",
    "found corroded",
    "tightened",
    "found without defect",
    "repainted",
    "ordered anew",
    "shut down",
    "taken to the workshop",
    "set to a new value",
)
_MONTHS = _split("January February March April May June July August September October November December")
_TEXT = """Inspection report

On {date} {name} inspected pump {pump} at the station in {place}. The visit followed the yearly plan. Pressure, \
temperature and flow rate were measured and written down, and all readings were within the limits. The {part} was \
{fate}. The operator signed the report, and the next inspection is due in twelve months.
"""


@dataclass(frozen=True)
class Report:
    """The name, place, pump and the state of a part that a report tells."""

    name: str
    place: str
    pump: int
    date: str
    part: str
    fate: str

    @property
    def text(self) -> str:
        """The whole report."""
        return _TEXT.format(**vars(self))

    @property
    def asked(self) -> tuple[str, str, str]:
        """Questions that it answers, alone if no other report has the same things."""
        return (
            f"What did {self.name} report about pump {self.pump} in {self.place}?",
            f"Which part did the inspection of pump {self.pump} in {self.place} on {self.date} name?",
            f"What was the result of the inspection by {self.name} on {self.date}?",
        )


def reports(count: int) -> list[Report]:
    """So many different reports; the first ones are the same for any count."""
    draw = random.Random(11)
    made: dict[Report, None] = {}
    while len(made) < count:
        made[
            Report(
                name=f"{draw.choice(_FIRST_NAMES)} {draw.choice(_LAST_NAMES)}",
                place=draw.choice(_PLACES),
                pump=draw.choice(_PUMPS),
                date=f"{draw.randint(1, 28)} {draw.choice(_MONTHS)} {draw.randint(2019, 2025)}",
                part=draw.choice(_PARTS),
                fate=draw.choice(_FATES),
            )
        ] = None
    return list(made)


def questions(made: list[Report], count: int) -> list[tuple[str, int]]:
    """Questions that one report alone answers, with its number, from all parts of the collection."""
    times = Counter(question for report in made for question in report.asked)
    step = max(1, len(made) // count)
    found = []
    for start in range(0, len(made), step):
        kind = len(found) % 3
        alone = (n for n in range(start, min(start + step, len(made))) if times[made[n].asked[kind]] == 1)
        if (number := next(alone, None)) is not None:
            found.append((made[number].asked[kind], number))
    return found[:count]
