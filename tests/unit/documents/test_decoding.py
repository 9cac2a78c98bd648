import pytest
from hypothesis import given
from hypothesis import strategies as st

from cragside.adapters.documents.decoding import decode


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Grüße – €".encode(), "Grüße – €"),
        ("Grüße".encode("utf-8-sig"), "Grüße"),
        ("Grüße".encode("utf-16"), "Grüße"),
        (b"\xfe\xff" + "Grüße".encode("utf-16-be"), "Grüße"),
        ("Grüße".encode("utf-32"), "Grüße"),
        ("Grüße".encode("latin-1"), "Grüße"),
        ("“Grüße”".encode("cp1252"), "“Grüße”"),
        (b"caf\xe9 \x81", "café \x81"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"", ""),
    ],
)
def test_encodings_are_recognised(content, text):
    assert decode(content) == text


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n\x00\x00", bytes(range(256)), b"\xff\xfe\x00", "a\x00b".encode("utf-16"), b"\x01" * 9],
)
def test_binary_content_is_no_text(content):
    assert decode(content) is None


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Plain text", "Привет, мир", "Grüße, zwei Zeilen\nund mehr", "Ελληνικά κείμενα"])
def test_utf16_without_byte_order_mark_is_recognised(encoding, text):
    assert decode(text.encode(encoding)) == text


def test_a_declared_charset_is_used_if_it_fits():
    assert decode("Привет".encode("koi8-r"), "koi8-r") == "Привет"
    assert decode("Grüße".encode(), "ascii") == "Grüße"
    assert decode("Grüße".encode("utf-8-sig"), "latin-1") == "Grüße", "a byte order mark decides"
    assert decode("日本語".encode("shift_jis"), "Shift_JIS") == "日本語"


@pytest.mark.parametrize("charset", ["no-such-thing", "rot13", "hex", "idna", "undefined", "utf-8\x00", "zlib"])
def test_an_unknown_charset_is_ignored(charset):
    assert decode("Grüße".encode(), charset) == "Grüße"


LINES = st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\n\t"))


@given(LINES.filter(lambda text: not text.startswith("\ufeff")))
def test_utf8_survives_decoding(text):
    assert decode(text.encode()) == text


@given(LINES, st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]))
def test_texts_with_byte_order_mark_survive_decoding(text, encoding):
    assert decode(text.encode(encoding)) == text


@given(st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), min_size=1), st.sampled_from("äöüß“–é"))
def test_windows_1252_survives_decoding_unless_it_is_valid_utf8(text, umlaut):
    content = f"{text} {umlaut} ".encode("cp1252")
    assert decode(content) == f"{text} {umlaut} "


@given(st.binary(max_size=2000), st.none() | st.sampled_from(["utf-16", "latin-1", "utf-7", "cp500"]))
def test_any_bytes_are_text_or_binary_and_never_an_error(content, charset):
    text = decode(content, charset)
    assert text is None or ("\x00" not in text and "\r" not in text)
