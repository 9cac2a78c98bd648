"""The grader relates the words of German and French questions and passages."""

import re
import time
from itertools import pairwise

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.adapters.embedded.languages import ForeignText, roots, tongue_of, unelided, word_weights
from cragside.adapters.embedded.words import Language, terms, words
from cragside.domain.verdict import DEFAULT_THRESHOLD

GRADER = EmbeddedGrader(WordLlamaEmbedder())
HERON = (
    "Der Graureiher steht reglos im flachen Wasser und fängt Fische, Frösche und Wühlmäuse. Er brütet in Kolonien auf "
    "hohen Bäumen; das Weibchen legt im März vier bis fünf hellblaue Eier, die beide Eltern abwechselnd bebrüten."
)
OYSTER = (
    "L'ostréiculteur capte les larves d'huîtres sur des tuiles chaulées, puis élève les jeunes coquillages trois ans "
    "en mer. Avant la vente, il les affine quelques semaines dans des bassins peu profonds, où une algue les verdit."
)


@pytest.mark.parametrize(
    ("text", "tongue"),
    [
        ("Was frisst ein Graureiher im Winter?", "german"),
        ("wie alt wird ein graureiher", "german"),
        ("Combien de temps dure l'affinage des huîtres ?", "french"),
        ("Où a-t-on trouvé du kaolin ?", "french"),
        ("What does a heron eat in winter?", "english"),
        ("Where is the café de la Paix?", "english"),
        ("x = a + d * c, where n and m are constants", "english"),
        ("¿Cuánto tiempo tarda la cría de las ostras?", "english"),
        ("Quanto tempo dura la coltivazione delle ostriche?", "english"),
        ("Hoe lang duurt de kweek van oesters?", "english"),
        ("Graureiher", "english"),
        ("", "english"),
    ],
)
def test_the_language_is_that_of_most_function_words(text: str, tongue: Language) -> None:
    assert tongue_of(words(text)) == tongue


def test_articles_and_pronouns_before_an_apostrophe_are_no_part_of_a_french_word() -> None:
    assert unelided(words("l'eau qu’elle d'abord aujourd'hui presqu'île")) == [
        *("eau", "elle", "abord"),
        *("aujourd'hui", "presqu'ile"),
    ]


@pytest.mark.parametrize(
    ("tongue", "family"),
    [
        ("german", "fangen fängt gefangen anfangen angefangen"),
        ("german", "schreiben schrieb geschrieben"),
        ("german", "erfinden erfand erfunden"),
        ("german", "ausgestorben sterben starben"),
        ("german", "kündigen Kündigung gekündigt"),
        ("german", "Vögel Vogel"),
        ("german", "aufzuladen laden aufladen"),
        ("french", "peser pèse pèsent"),
        ("french", "construire construit construction"),
        ("french", "inventé inventée inventer"),
        ("french", "libérer libérée"),
        ("french", "marchand marchandises"),
        ("french", "œuf œufs oeuf"),
    ],
)
def test_related_words_share_a_root(tongue: Language, family: str) -> None:
    forms = [roots(word, tongue) for word in words(family)]
    assert all(not first.isdisjoint(second) for first, second in pairwise(forms))


@pytest.mark.parametrize(
    ("tongue", "first", "second"),
    [
        ("german", "fischen", "frischen"),
        ("german", "verlieren", "verlangen"),
        ("german", "bringen", "brechen"),
        ("french", "pondre", "poudre"),
        ("french", "marche", "mardi"),
    ],
)
def test_words_that_only_look_alike_share_none(tongue: Language, first: str, second: str) -> None:
    assert roots(*words(first), tongue).isdisjoint(roots(*words(second), tongue))


def test_a_compound_is_found_by_its_parts_and_in_longer_ones() -> None:
    text = ForeignText.of(words("Die Kette des Fahrrads und der Blasebalg der Kirchenorgel; Häuser"), "german")
    assert text.has("fahrradkette") == text.has("kette") == 1
    assert 0.5 < text.has("ankerkette") < 1
    assert 0.5 < text.has("orgel") < 1
    assert 0.5 < text.has("häuserzeile") < 1
    assert text.has("trompete") == text.has("et") == 0


def test_common_words_count_less_and_german_nouns_more() -> None:
    question = "Wie lange leben Graureiher im Zoo?"
    lange, leben, heron = word_weights(["lange", "leben", "graureiher"], question, "german")
    assert lange == leben < 1 < heron
    assert word_weights(["graureiher"], question.lower(), "german") == [1]
    assert word_weights(["longtemps", "vivent", "hérons"], "Combien de temps vivent les hérons ?", "french")[1] < 1


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Wie viele Eier legt ein Graureiherweibchen?", HERON),
        ("Welche Fische werden vom Graureiher gefangen?", HERON),
        ("wo bruetet der graureiher", HERON),
        ("Combien de temps élève-t-on les huîtres en mer ?", OYSTER),
        ("Sur quoi les larves d'huîtres sont-elles captées ?", OYSTER),
        ("ou affine-t-on les huitres avant de les vendre", OYSTER),
    ],
)
def test_a_passage_in_the_questions_language_passes(question: str, text: str) -> None:
    assert GRADER.scores(question, [("", text)])[0] > DEFAULT_THRESHOLD


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Wie viele Eier legt ein Haubentaucher?", HERON),
        ("Wann werden Apfelbäume geschnitten?", HERON),
        ("Combien de temps dure l'élevage des truites ?", OYSTER),
        ("Quand la cathédrale a-t-elle été construite ?", OYSTER),
        (HERON.partition(".")[0] + "?", HERON.partition(".")[0] + "?"),
    ],
)
def test_a_passage_about_something_else_or_an_echo_does_not_pass(question: str, text: str) -> None:
    assert GRADER.scores(question, [("", text)])[0] <= DEFAULT_THRESHOLD


def test_a_question_as_german_as_it_is_english_is_sought_in_both() -> None:
    assert {"fress", "fressen", "raup"} <= set(terms("Was fressen Raupen?"))
    assert terms("What do caterpillars eat?") == ["caterpillar", "eat"]


def test_endless_words_are_compared_as_they_are() -> None:
    endless = "donaudampfschiff" * 5000
    started = time.process_time()
    text = ForeignText.of([endless, "kette"], "german")
    assert text.has(endless) == 1
    assert text.has(endless[1:]) == 0
    assert roots(endless, "german") == {endless}
    assert re.fullmatch("[a-z ]+", text.joined)
    assert time.process_time() - started < 5
