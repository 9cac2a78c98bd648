import pytest

from cragside.adapters.embedded.numbers import named_numbers, numbers_of, plain


def has_all(question: str, text: str) -> bool:
    stated = numbers_of(text)
    return not any(stated.isdisjoint(forms) for forms in named_numbers(question))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("boat shed 12", "boat shed 012"),
        ("how long is jetty C", "Jetty C: 40 m"),
        ("how long is jetty C", "Jetties A, B and C are 40 m long."),
        ("how long is jetty C", "Jetties A–D are 40 m long."),
        ("how long is jetty C", "berth C12"),
        ("who is John F Kennedy", "Kennedy"),
        ("WHO PAYS FOR JETTY C", "the club pays"),
        ("boat shed 12", "the twelfth boat shed"),
        ("the 12th shed", "shed 12"),
        ("chapter 3", "das dritte Kapitel"),
        ("a notice of 30 days", "thirty days"),
        ("Frist von 30 Tagen", "dreißig Tage"),
        ("un délai de 30 jours", "trente jours"),
        ("shed 12", "shed12"),
        ("prize of 1,000 euros", "1000 euros"),
        ("prize of 1000 euros", "1.000 Euro"),
        ("prize of 1000000", "1 000 000"),
        ("3 million people", "3,000,000 people"),
        ("3000000 people", "3 million people"),
        ("the K200", "the K-200"),
        ("the K-200", "the K200"),
        ("K 200", "K200"),
        ("5551234", "555-1234"),
        ("12km", "12 kilometres"),
        ("12 km", "12km"),
        ("at 10:00", "at 10"),
        ("at 10:30", "at 10.30"),
        ("2,5 percent", "2.5 percent"),
        ("Python 3", "Python 3.11"),
        ("Python 3.11", "Python 3.11.4"),
        ("World War II", "the Second World War"),
        ("World War 2", "World War II"),
        ("in 1918", "(1914–18)"),
        ("in 1916", "from 1914 to 1918"),
        ("in the 1990s", "in 1994"),
        ("in the 90s", "in the 1990s"),
        ("in the 19th century", "in 1850"),
        ("top 10 boats", "boats"),
        ("give me 3 facts", "facts"),
        ("explain in 20 words", "an explanation"),
        ("may I march", "you are allowed"),
        ("CO2", "CO₂"),
    ],
)
def test_a_number_is_found_in_its_other_forms(question: str, text: str) -> None:
    assert has_all(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("boat shed 17", "boat shed 12"),
        ("boat shed 12", "boat shed 112 and boat shed 120"),
        ("the K500", "the K200"),
        ("the XR200", "the K200"),
        ("apartment 3b", "apartments 3a and 3c"),
        ("version 3.10", "version 3.1"),
        ("Python 2", "Python 3.12"),
        ("2.5 percent", "2.6 percent and 5 percent"),
        ("in 2019", "in 2018"),
        ("in 1913", "1914–1918"),
        ("in the 1990s", "in 1894"),
        ("in the 19th century", "in 1750"),
        ("World War I 1939 II", "World War I"),
        ("1,000 euros", "1,001 euros"),
        ("error 404 in 20 words", "error 500 in 20 words"),
    ],
)
def test_another_number_is_another_thing(question: str, text: str) -> None:
    assert not has_all(question, text)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("1,000", "1000"), ("12th", "12"), ("007", "7"), ("vii", "7"), ("0", "0"), ("k200", "k200"), ("3.10", "3.10")],
)
def test_equal_numbers_have_one_plain_form(word: str, expected: str) -> None:
    assert plain(word) == expected


@pytest.mark.parametrize("question", ["how long is jetty C", "Wie lang ist Steg C?", "vitamin D"])
def test_a_letter_that_names_a_thing_is_not_another_letter(question: str) -> None:
    assert not has_all(question, "Jetty A: 40 m. Jetty B: 30 m. Vitamin B helps.")


def test_a_question_without_numbers_names_none() -> None:
    assert named_numbers("who rents the boat shed in spring") == []


def test_a_number_with_endless_dots_has_few_forms() -> None:
    assert len(numbers_of("1." * 20_000 + "1")) < 20
