import pytest

from cragside.adapters.embedded.answers import Kind, asked_kind, has_kind
from cragside.adapters.embedded.words import words


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How much does the piano tuner cost?", Kind.MONEY),
        ("what salary does Priya Raman get", Kind.MONEY),
        ("max hotel price in hamburg", Kind.MONEY),
        ("Was hat die Kaffeemaschine gekostet?", Kind.MONEY),
        ("Wie hoch war die Stromrechnung 2023?", Kind.MONEY),
        ("Combien coûte la location ?", Kind.MONEY),
        ("How tall is the mast?", Kind.LENGTH),
        ("thickness of the counter", Kind.LENGTH),
        ("How many litres does the van hold?", Kind.VOLUME),
        ("how much of the cocoa comes from ghana", Kind.AMOUNT),
        ("phone number of the vet", Kind.PHONE),
        ("Wie lang ist Steg C?", Kind.SPAN),
        ("how long was the meeting", Kind.SPAN),
        ("Wie alt ist der Hund?", Kind.AGE),
        ("how heavy is the keel", Kind.WEIGHT),
        ("how fast can the boat go", Kind.SPEED),
        ("how fast is the boat", Kind.SPEED),
        ("Combien d'heures dure le trajet ?", Kind.AMOUNT),
        ("until when is the offer valid", Kind.DATE),
        ("In welchem Jahr wurde die Brücke gebaut?", Kind.DATE),
        ("Quand ouvre le marché ?", Kind.DATE),
        ("what colour is the mast", Kind.COLOUR),
        ("colour of the kestrel tour", Kind.COLOUR),
        ("Welche Farbe hat das Tor?", Kind.COLOUR),
        ("De quelle couleur est la porte ?", Kind.COLOUR),
        ("how is colour designer Lou known", None),
        ("e-mail of the plumber", Kind.MAIL_ADDRESS),
        ("address of the plumber", Kind.ADDRESS),
        ("Wie ist die Adresse vom Tierarzt?", Kind.ADDRESS),
        ("website of the club", Kind.SITE),
        ("opening hours of the library", Kind.DATE),
        ("what is the deadline for the grant", Kind.DATE),
        ("battery range of the cargo bike", Kind.SPAN),
        ("who rents the shed", None),
        ("why is the price so high", None),
        ("What famous film did Fox pay to advertise?", None),
        ("can we travel faster than the speed of light", None),
        ("?!", None),
    ],
)
def test_a_question_asks_for_a_kind_of_answer(question: str, kind: Kind | None) -> None:
    assert asked_kind(question) is kind


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("what does the tuner cost", "The tuner came in May. He cost 115 euros."),
        ("what does the tuner cost", "service: tuner; price_eur: 115"),
        ("what does the tuner cost", "The tuner: €95"),
        ("van price", "Offers for the van: 21,900 and 28,400."),
        ("how tall is the mast", "The mast is 12.4 m tall."),
        ("how thick is the board", "Board: 18mm"),
        ("how many ladders are there", "There are three ladders."),
        ("phone number of the vet", "Vet: Dr. Rosen, 04521 / 77 31-0"),
        ("how old is the roof", "The roof was built in 1987."),
        ("how long is the jetty", "jetty; length_m: 72"),
        ("how long is the course", "The course takes two evenings, three hours each."),
        ("how many litres does the tank hold", "The tank holds 60 l."),
        ("how fast is the boat", "The boat makes 7 knots under engine."),
        ("how fast does the kelp grow", "The kelp grows half a metre a day."),
        ("Wie viele Grad hat der Ofen?", "Der Ofen hat zweihundertzwanzig Grad."),
        ("Wie viele Leitern gibt es?", "Es gibt dreizehn Leitern."),
        ("when is the lesson", "The lesson is at four."),
        ("when is the lesson", "The lesson is at 17:30."),
        ("when was the boiler serviced", "Boiler serviced on 12.11.2024."),
        ("when was the mill built", "The mill was built in the 1840s."),
        ("colour of the gate", "The gate is dark green."),
        ("Welche Farbe hat das Tor?", "Das Tor: hellgraue Latten"),
        ("De quelle couleur est la porte ?", "La porte est bleue."),
        ("e-mail of the vet", "Vet: Dr. Rosen, praxis@rosen.example"),
        ("website of the club", "The club: www.club.example"),
        ("address of the vet", "Vet: Dr. Rosen, Hafenstraße 12"),
        ("address of the vet", "Vet: Dr. Rosen, 3 Mill Lane"),
        ("Wie ist die Adresse vom Tierarzt?", "Tierarzt Rosen, 24103 Kiel"),
        ("opening hours of the library", "The library: Tuesdays and Thursdays, 15:00 to 18:00"),
        ("battery range of the bike", "The battery of the bike: range 80 km"),
        ("when does the baker sell sourdough", "The baker sells sourdough on Saturdays."),
    ],
)
def test_a_text_has_the_kind_beside_the_words_of_the_question(question: str, text: str) -> None:
    kind = asked_kind(question)
    assert kind is not None
    assert has_kind(kind, words(question), "", text, "english")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("what does the tuner cost", "The tuner came on 4 May at the cost of a lost afternoon."),
        ("what does the tuner cost", "The tuner came. We had tea. Lunch was 12 euros."),
        ("how many ladders are there", "There are ladders on jetty A since 2019."),
        ("how many ladders did jetty 7 have", "Jetty 7 has ladders."),
        ("how tall is the mast", "The mast is tall, it has 4 stays."),
        ("phone number of the vet", "The vet, Dr. Rosen, comes at 17:00 on 4 May."),
        ("how old is Tessa", "Tessa sails boat 14 in the group of 17:00."),
        ("how long is the jetty", "The jetty has 16 berths."),
        ("how many litres does the tank hold", "The tank has number 41."),
        ("how heavy is the keel", "The keel has 4 bolts."),
        ("when was the boiler serviced", "The boiler was serviced. It has 34 kg and 2 valves."),
        ("top speed of the bike", "The bike has 8 gears."),
        ("when is the lesson", "The lesson is in the blue room."),
        ("what does the drill cost", "The drill has a cable resistance of 0,27 Ohm."),
        ("what does the drill cost", "The drill weighs 1.85 kg."),
        ("colour of the gate", "The gate is of oak, 1.2 m high."),
        ("e-mail of the vet", "The vet, Dr. Rosen: 04521 77 31."),
        ("address of the vet", "The vet, Dr. Rosen, comes on 4 May."),
        ("website of the club", "The club meets on Fridays."),
        ("opening hours of the library", "The library has 3 rooms."),
        ("battery range of the bike", "The battery of the bike weighs 3 kg."),
        ("when is the lesson", ""),
    ],
)
def test_a_text_without_it_or_with_it_elsewhere_has_it_not(question: str, text: str) -> None:
    kind = asked_kind(question)
    assert kind is not None
    assert not has_kind(kind, words(question), "", text, "english")


def test_words_of_the_title_do_not_say_where_the_answer_is() -> None:
    text = "The Suez Canal joins the seas. It was opened to ships. It is 193 kilometres long."
    question = words("How long is the Suez Canal?")
    assert has_kind(Kind.SPAN, question, "Suez Canal", text, "english")
    assert not has_kind(Kind.SPAN, question, "", text.replace("193 kilometres long", "kept by 300 men"), "english")
