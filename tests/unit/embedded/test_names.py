import pytest

from cragside.adapters.embedded.embedder import Lexicon, WordLlamaEmbedder
from cragside.adapters.embedded.names import is_english, mentions, misspells, names_in, resembles
from cragside.adapters.embedded.words import words

LEXICON = Lexicon(WordLlamaEmbedder())


@pytest.mark.parametrize("name", ["hessin", "arden", "brodmann", "kowalczyk", "joachim's", "lisinopril"])
def test_words_that_the_vocabulary_lacks_are_rare_names(name: str) -> None:
    assert names_in([name], LEXICON, rare=True) == [name]


@pytest.mark.parametrize("name", ["london", "victoria"])
def test_names_that_it_has_with_a_capital_are_not_rare(name: str) -> None:
    assert names_in([name], LEXICON, rare=True) == []
    assert names_in([name], LEXICON, rare=False) == [name]


@pytest.mark.parametrize(
    "word", ["river", "sings", "youngest", "running", "determines", "planes", "sailor", "unorganized", "k200", "zürich"]
)
def test_common_english_words_and_codes_are_no_names(word: str) -> None:
    assert names_in([word], LEXICON, rare=False) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hessen", "Hessen's forests"),
        ("german", "in Germany"),
        ("canadian", "in Canada"),
        ("hyperinflationary", "a hyperinflation"),
        ("wernickes", "Wernicke’s area"),
        ("boathouse", "the boat house"),
        ("armour", "the armor"),
        ("yaro", "Y.A.R.O."),
        ("havent", "They haven't"),
        ("mueller", "Herr Müller"),
        ("muller", "Herr Mueller"),
        ("usa", "the United States of America"),
    ],
)
def test_a_name_is_found_in_its_other_forms(name: str, text: str) -> None:
    assert mentions(name, [name], words(text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hessin", "the state of Hessen"),
        ("arden", "Lake Barden"),
        ("marta", "Marty"),
        ("greeci", "Greece"),
        ("nasa", "ESA"),
    ],
)
def test_a_similar_name_is_another_name(name: str, text: str) -> None:
    assert not mentions(name, [name], words(text))


def test_one_other_letter_makes_a_similar_name() -> None:
    assert resembles("hessin", words("the state of Hessen"))
    assert not resembles("hessin", words("the states Hessens, Hesse and Hamburg, and Hessin itself"))


def test_two_words_of_a_question_may_be_one_of_the_text() -> None:
    assert mentions("horyu", words("where is horyu ji"), words("the Hōryūji temple"))
    assert not mentions("horyu", words("where is horyu ji"), words("the Todaiji temple"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who rents the shed", True),
        ("hessen 12", True),
        ("wer mietet das Bootshaus", False),
        ("où est la clé de la cave", False),
    ],
)
def test_function_words_tell_english(text: str, expected: bool) -> None:
    assert is_english(words(text)) is expected


def test_a_common_word_with_a_slip_is_misspelt_and_a_name_like_another_is_not() -> None:
    assert misspells("batery", words("the UPS battery was replaced"), LEXICON)
    assert not misspells("hessin", words("the state of Hessen"), LEXICON)
