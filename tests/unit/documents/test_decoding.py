import codecs
from random import Random

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


WESTERN = (
    "Grüße",
    "Grüße aus Köln – „so geht’s“",
    "Artikel;Preis\nGummistiefel, grün;12,50 €\nÖljacke;40 €\n",
    "Straße 5",
    "Le café ferme à six heures",
    "Ça coûte 5 €, né à l’hôtel",
    "déjà vu",
    "# Stage à Lille",
    "El señor Núñez llegó mañana por la mañana. ¿Cuánto cuesta?",
    "A reunião começa às oito, não há exceções.",
    "La città è più bella così, perché no?",
    "Mötet börjar på måndag klockan åtta.",
    "Mødet begynder på tirsdag. Ål og æbler koster tyve kroner.",
    "It’s “fine” – see § 5",
    "naïve £5 and 20°C ± 2 °C",
    "def f(x):\n    return x  # µm per °C\n",
    "Price: 12 ½ crowns for 3 m²\n",
    '"5.650 €"',
)


@pytest.mark.parametrize("text", WESTERN)
def test_western_texts_are_recognised_however_short(text):
    assert decode(text.encode("cp1252")) == text


LEGACY = {
    "cp1251": "Насос номер четыре заменил слесарь Огородников.",
    "koi8-r": "товар;цена\nсапоги;125\nперчатки;40\n",
    "koi8-u": "Ціна квитка п'ять гривень, її очолює пані Ґалаґан.",
    "cp866": "Договор от 3 марта, срок оплаты 30 дней",
    "iso8859-5": "Паром отходит в восемь сорок утра",
    "cp1253": "προϊόν;τιμή\nμπότες;125\nγάντια;40\n",
    "iso8859-7": "Το πλοίο φεύγει κάθε Τρίτη στις οκτώ",
    "cp1255": "מוצר,מחיר\nמגפיים,125\nכפפות,40\n",
    "iso8859-8": "הספינה יוצאת בכל יום שלישי בשמונה בבוקר",
    "cp1256": "تغادر العبارة كل يوم ثلاثاء في الثامنة صباحا",
    "cp1250": "Książka jest na półce, wymienił mechanik Ździebło",
    "iso8859-2": "Następny przegląd odbędzie się w październiku, Ździebło",
    "cp1254": "Vapur her salı sabah saat sekizde iskeleden kalkıyor, bilet ücreti yirmi beş liradır.",
    "cp1257": "Vožtuvą pakeitė mechanikas Žukauskas, raktą saugo sargė Jūratė.",
    "cp874": "สินค้า,ราคา\nรองเท้า,125\n",
    "cp932": "品名,数量,倉庫\n長靴,125,北倉\n防水布,58,南倉\n",
    "euc_jp": "会議は火曜日の午前八時に始まります。",
    "iso2022_jp": "会議は火曜日の午前八時に始まります。",
    "cp949": "품명,수량\n장화,125\n방수포,58\n",
    "iso2022_kr": "회의는 화요일 오전 여덟 시에 시작합니다.",
    "gbk": "二号冷却塔的水泵由技师沈岚于三月更换，新水泵功率为七点五千瓦。",
    "gb18030": "会议在星期二上午八点开始。",
    "big5": "會議在星期二上午八點開始，由林先生主持。",
    "iso8859-15": "Kaffee 1,50 €, Öljacke 40 €",
    "utf-16-le": "会议在星期二上午八点开始。\n125\n",
    "utf-16-be": "회의는 화요일 오전 여덟 시에 시작합니다.",
}


@pytest.mark.parametrize(("encoding", "text"), LEGACY.items(), ids=LEGACY)
def test_short_texts_in_legacy_encodings_are_recognised(encoding, text):
    assert decode(text.encode(encoding)) == text


def test_the_words_decide_although_they_come_late_in_a_large_file():
    text = "plain line of a log\n" * 20_000 + LEGACY["cp1251"] * 3_000
    assert decode(text.encode("cp1251")) == text


def test_a_long_line_is_recognised_although_the_sample_cuts_a_character():
    text = "二号冷却塔的水泵由技师沈岚于三月更换，" * 2_000 + "。"
    assert decode(("a" + text).encode("gbk")) == "a" + text
    assert decode(text.encode("gbk")) == text


def test_a_few_damaged_bytes_do_not_change_the_encoding():
    text = LEGACY["cp1251"].encode()
    assert decode(text + b"\xff\n") == LEGACY["cp1251"] + "\ufffd\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Name;Ort\nMüller;Köln\nSchröder;Düss".encode() + b"\xff\n", "Name;Ort\nMüller;Köln\nSchröder;Düss�\n"),
        ("# Hütte\n\nDer Schlüssel ".encode() + b"\xc3" + b" steckt.\n", "# Hütte\n\nDer Schlüssel � steckt.\n"),
        ("Der Schlüssel hängt an de".encode() + b"\xfc" + "r Tür.".encode(), "Der Schlüssel hängt an de�r Tür."),
        (b"It" + b"\x92" + "s late — that’s final: 45 €.".encode(), "It�s late — that’s final: 45 €."),
        ("Ключ висит за дверью".encode()[1:], "�люч висит за дверью"),
        ("鍵は棚の上にあります".encode()[:-1], "鍵は棚の上にありま�"),
        ("Kaffee für 2 €".encode()[:-1], "Kaffee für 2 �"),
        ("Für Gäste\nKaffee 2 €".encode()[:-1], "Für Gäste\nKaffee 2 �"),
        (b"caf\xc3\xa9 \xff", "café �"),
    ],
)
def test_damaged_bytes_of_utf8_are_replaced_however_short_the_text(content, text):
    assert decode(content) == text


@pytest.mark.parametrize("more", [1, 20])
def test_lines_in_windows_1252_among_lines_in_utf8_are_read(more):
    rows = "Schröder;Düsseldorf\n“Café”;5 €\n" * more
    assert decode("Name;Ort\nMüller;Köln\n".encode() + rows.encode("cp1252")) == "Name;Ort\nMüller;Köln\n" + rows


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1250", "SPÓŁKA ŻURAW"),
        ("cp1252", "Im «CAFÉ» (5 €)"),
        ("cp1252", "“OLÉ”"),
        ("koi8-r", "ещё не всё"),
        ("cp866", "стол и рога"),
        ("gb18030", "八点开始"),
        ("euc_jp", "午前に始ま"),
    ],
)
def test_legacy_texts_whose_bytes_are_valid_utf8_by_chance_stay_themselves(encoding, text):
    content = text.encode(encoding)
    assert content.decode("utf-8", "ignore").encode("ascii", "ignore") != content.decode("utf-8", "ignore").encode()
    assert decode(content) == text


def test_only_usual_western_characters_make_a_text_one_of_mac_os():
    text = "Le café est fermé à Noël. La clé est derrière le rideau rouge, près de l’entrée."
    assert decode(text.encode("mac-roman")) == text
    assert "√" not in (decode(b"Le caf\xc3") or "")


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Le café", 1),
        ("Der Schlüssel hängt an der Tü", 1),
        ("Prix 5 €", 2),
        ("Prix 5 €", 1),
        ("It is “fine”", 2),
        ("Ключ", 1),
    ],
)
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_a_character_of_utf8_that_is_cut_off_at_the_end_is_replaced(text, cut, mark):
    assert decode(mark + text.encode()[:-cut]) == text[:-1] + "\ufffd"


@pytest.mark.parametrize("text", ["Le café", "CAFÉ", "La città", "«la città»", "está", "hjá"])
def test_a_letter_of_windows_1252_at_the_end_is_no_cut_character(text):
    assert decode(text.encode("cp1252")) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_character_of_utf16_that_is_cut_off_at_the_end_is_replaced(encoding):
    assert decode("\ufeffGrüße".encode(encoding)[:-1]) == "Grüß\ufffd"


@pytest.mark.parametrize(
    ("charset", "content", "text"),
    [
        ("iso-8859-1", "“fine” – 5 €".encode("cp1252"), "“fine” – 5 €"),
        ("iso-8859-1", "Grüße".encode(), "Grüße"),
        ("us-ascii", LEGACY["cp1251"].encode("cp1251"), LEGACY["cp1251"]),
        ("gb2312", "镕基，二号".encode("gbk"), "镕基，二号"),
        ("shift_jis", "① 髙橋".encode("cp932"), "① 髙橋"),
        ("windows-874", LEGACY["cp874"].encode("cp874"), LEGACY["cp874"]),
    ],
)
def test_a_declared_charset_counts_as_what_programs_write_under_its_name(charset, content, text):
    assert decode(content, charset) == text


def test_the_encoding_that_an_xml_file_declares_is_used():
    text = '<?xml version="1.0" encoding="koi8-r"?><a>Ёж</a>'
    assert decode(text.encode("koi8-r")) == text


BEYOND_ASCII = bytes(code if code % 7 == 0 else code | 0x80 for code in range(256)).replace(b"\x00", b" ")


@pytest.mark.parametrize(
    "content",
    [Random(1).randbytes(300).translate(BEYOND_ASCII), b"a\x80b\xffc\x81d \x9d\x8de\xfe", b"\xd8\x00\x80\xff" * 50],
)
def test_bytes_that_make_no_words_in_any_encoding_are_refused(content):
    assert decode(content) is None


NOISE = {
    "any bytes": [*range(1, 256)],
    "no control characters": [9, 10, *range(32, 127), *range(128, 256)],
    "beyond ASCII": [*range(128, 256)],
    "every second byte": [*range(128, 256, 2)],
    "letters of ISO 8859": [*range(192, 256)],
    "lines": [10, 10, 10, *range(160, 256)],
    "words": [32] * 20 + [*range(128, 256)],
    "ASCII in between": [*range(97, 123)] * 4 + [*range(128, 256)],
}


@pytest.mark.parametrize("size", [150, 900, 5000])
@pytest.mark.parametrize("kind", NOISE)
def test_noise_is_refused(kind, size):
    for seed in range(5):
        assert decode(bytes(Random(seed).choices(NOISE[kind], k=size))) is None


def test_noise_that_a_formula_repeats_is_refused():
    for step in (3, 7, 11, 26):
        assert decode(bytes(0x80 + (number * number * step + number) % 128 for number in range(900))) is None


@pytest.mark.parametrize("text", ["ドキュメントのスプレッドシート", "スクロールペイン", "ユーザーメニューのアイコン"])
@pytest.mark.parametrize("encoding", ["cp932", "euc_jp"])
def test_katakana_alone_is_recognised(text, encoding):
    assert decode(text.encode(encoding)) == text


@given(st.binary(max_size=2000), st.none() | st.sampled_from(["utf-16", "latin-1", "utf-7", "cp500"]))
def test_any_bytes_are_text_or_binary_and_never_an_error(content, charset):
    text = decode(content, charset)
    assert text is None or ("\x00" not in text and "\r" not in text)
