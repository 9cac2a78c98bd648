"""Pages and mails whose tags and headers are made to take their parsers minutes: each is refused at once."""

import signal
from collections.abc import Iterator

import pytest

from cragside.adapters.documents import emails, html
from cragside.adapters.documents.reading import FileOrigin, Unreadable

EXHAUSTED = pytest.mark.attack("exhausted resources")
MANY = 200_000
SEVERAL = 20_000


@pytest.fixture(autouse=True)
def little_time() -> Iterator[None]:
    """Ends a test that takes more than two seconds of the processor; each of these took four to hundreds."""

    def late(*_: object) -> None:
        raise AssertionError("It takes too long.")

    previous = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, previous)


def page(attributes: str) -> bytes:
    return f"<html><body><p {attributes}>Otters hold hands.</p></body></html>".encode()


@EXHAUSTED
@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param(" ".join(f"a{n}=x" for n in range(MANY)), id="bare"),
        pytest.param("".join(f'a{n}="x"' for n in range(MANY)), id="quoted and together"),
        pytest.param("\n".join(f"a{n}" for n in range(MANY)), id="without values"),
        pytest.param(" ".join(f"a{n}='>'" for n in range(MANY)), id="with the tag's end in each"),
        pytest.param(" ".join(f'a{n} = "<p>"' for n in range(MANY)), id="with a tag in each"),
        pytest.param('="' * 3 + " ".join(f"a{n}=x" for n in range(MANY)), id="after an open quote"),
    ],
)
def test_an_element_has_a_bounded_number_of_attributes(attributes: str) -> None:
    with pytest.raises(Unreadable, match="has an element with more than 1,000 attributes, which is the limit"):
        html.tree_of(page(attributes), None)


@EXHAUSTED
@pytest.mark.parametrize("text", ['="' * MANY, "='" * MANY, "= " * MANY, "<a " * MANY, "<a ='" * MANY, '<a "' * MANY])
def test_counting_attributes_takes_linear_time(text: str) -> None:
    html._most_attributes(text)


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"data-{n}='{n}'" for n in range(400)),
        "class='" + "wide " * 50_000 + "'",
        ">" + "a < b and b =c, " * 5000,
        "><script>" + "if (a <b) x=1; y = 2; z => z;" * 5000 + "</script",
        "style='" + "color: red; " * 10_000 + '\' onclick="if (a > b) c = d"',
    ],
)
def test_pages_with_many_words_or_long_values_are_read(text: str) -> None:
    assert "Otters hold hands." in html.whole(html.tree_of(page(text), None)).text


def mail(head: str, body: str = "Otters hold hands.") -> bytes:
    return f"From: a@sea.example\r\nSubject: Otters\r\n{head}\r\n\r\n{body}".encode()


@EXHAUSTED
@pytest.mark.parametrize(
    "head",
    [
        pytest.param("Cc: " + ", ".join(f"a{n}@sea.example" for n in range(SEVERAL)), id="addresses"),
        pytest.param("Cc: " + ",\r\n ".join(f"a{n}@sea.example" for n in range(SEVERAL)), id="folded addresses"),
        pytest.param("Cc: " + ",\n\t".join(f"a{n}@sea.example" for n in range(SEVERAL)), id="addresses with tabs"),
        pytest.param("To: " + '"a" ' * SEVERAL, id="quoted names"),
        pytest.param("To: " + "a." * SEVERAL, id="dots"),
        pytest.param("to : " + "a:" * SEVERAL, id="groups"),
        pytest.param("To: " + "(" * SEVERAL * 2, id="comments in comments"),
        pytest.param("Subject: " + " ".join(["=?utf-8?q?a?="] * SEVERAL), id="encoded words"),
        pytest.param("References: " + " ".join(f"<{n}@sea.example>" for n in range(SEVERAL)), id="references"),
        pytest.param("Content-Type: text/plain" + "; a=b" * SEVERAL, id="parameters"),
        pytest.param(
            "Content-Type: text/plain" + "".join(f'; name*{n}="x"' for n in range(SEVERAL)), id="continuations"
        ),
        pytest.param(
            "Content-Disposition: attachment" + "".join(f";\r\n filename*{n}*=x" for n in range(SEVERAL)),
            id="folded continuations",
        ),
        pytest.param("Content-Type: text/plain; charset=" + "x" * 50_000, id="a charset"),
    ],
)
@pytest.mark.parametrize("where", ["message", "part"])
def test_headers_of_mails_have_a_bounded_length(head: str, where: str) -> None:
    content = mail(head)
    if where == "part":
        content = mail("Content-Type: multipart/mixed; boundary=b", f"--b\r\n{head}\r\n\r\nOtters.\r\n--b--\r\n")
    with pytest.raises(Unreadable, match="has a header of more than 32,768 bytes, which is the limit"):
        emails.read(content, FileOrigin("a.eml", "eml"))


@EXHAUSTED
def test_a_mail_has_a_bounded_number_of_headers() -> None:
    with pytest.raises(Unreadable, match="has more than 1,000 headers, which is the limit"):
        emails.read(mail("\r\n".join(f"X-{n}: y" for n in range(SEVERAL))), FileOrigin("a.eml", "eml"))


@EXHAUSTED
@pytest.mark.parametrize("value", ["(" * 15_000, '"a" ' * 4000, "=?utf-8?q?a?= " * 1200, "a." * 8000])
def test_a_text_that_begins_with_such_a_header_is_a_text(value: str) -> None:
    assert emails.mail_facts(f"From: {value}\nTo: b@sea.example\n\nOtters.") == (False, {})


@EXHAUSTED
def test_comments_within_comments_leave_the_rest_of_a_mail() -> None:
    reading = emails.read(mail("Cc: " + "(" * 10_000), FileOrigin("a.eml", "eml"))
    assert (reading.title, reading.text.strip().endswith("Otters hold hands.")) == ("Otters", True)


def test_long_texts_and_lists_of_recipients_are_no_offence() -> None:
    head = "To: " + ",\r\n ".join(f"Keeper {n} <keeper{n}@sea.example>" for n in range(500))
    body = "Output:\r\n" + "    indented\r\n" * 10_000
    assert "indented" in emails.read(mail(head, body), FileOrigin("a.eml", "eml")).text
