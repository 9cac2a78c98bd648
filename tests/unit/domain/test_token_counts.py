import pytest
from hypothesis import given
from hypothesis import strategies as st

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.domain import token_counts as tokens
from cragside.domain.token_counts import count_tokens, most_tokens

PROSE = (
    "Insulin is a peptide hormone produced by beta cells of the pancreatic islets. It regulates the metabolism of "
    "carbohydrates, fats and protein by promoting the absorption of glucose from the blood into liver, fat and "
    "skeletal muscle cells. In 1921, Frederick Banting and Charles Best first isolated it at the University of Toronto."
)
GERMAN = (
    "Die Bauchspeicheldrüse bildet in den Betazellen das Hormon Insulin, das den Blutzuckerspiegel senkt. Fehlt es, so "
    "spricht man von Diabetes mellitus; behandelt wird er seit rund hundert Jahren durch Injektionen."
)
CODE = (
    "async def grade(self, query: str) -> list[float]:\n    return [await self._score(d) for d in self.docs[:8]]\n" * 4
)


@pytest.mark.parametrize("text", [PROSE, GERMAN, CODE, PROSE * 20], ids=["prose", "german", "code", "long"])
def test_the_estimate_lies_between_nine_tenths_and_three_halves_of_the_exact_count(text: str) -> None:
    exact = len(WordLlamaEmbedder().token_ids(text))
    assert 0.9 * exact <= count_tokens(text) <= 1.5 * exact


@pytest.mark.parametrize(
    "text",
    [
        "日本語の質問は何ですか。これは長い文です。",
        "Привет, как дела?",
        "😀😀😀😀",
        "0123456789abcdef" * 10,
        "हिन्दी भाषा क्या है",
    ],
)
def test_text_without_known_pieces_is_not_underestimated(text: str) -> None:
    assert count_tokens(text) >= 0.8 * len(WordLlamaEmbedder().token_ids(text))


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        GERMAN,
        CODE,
        "0.23796462709189137 0.5442292252959519 17 42 1999 2026-11-22 " * 20,
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "QmFzZTY0IHRleHQgaXMgaGFyZCBmb3IgdG9rZW5pemVycywgYXMgaXQgbG9va3MgbGlrZSBub3RoaW5nLg==",
        "for (int i = 0; i < n; ++i) { a[i] ^= (b[i] << 3) | (c[i] >> 5); }",
        "!@#$%^&*()[]{};:<>/?~+=-_|",
        "龘靐齉爩鱻麤龗灪吁爨癵籱" * 20,
        "北京是中华人民共和国的首都，位于华北平原的北部。",
        "القاهرة هي عاصمة جمهورية مصر العربية وأكبر مدنها",
        "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας",
        "हिन्दी भाषा क्या है",
        "🦄🧬🪐🫠🥷🏽👩‍🚀",
        "Donaudampfschifffahrtsgesellschaft, Verwaltungsgerichtsordnung",
    ],
)
def test_no_hard_text_takes_more_than_the_most(text: str) -> None:
    assert len(WordLlamaEmbedder().token_ids(text)) <= most_tokens(text)


def test_the_empty_text_takes_no_tokens() -> None:
    assert count_tokens("") == most_tokens("") == 0


@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_never_takes_noticeably_fewer_tokens(one: str, other: str) -> None:
    assert count_tokens(one + other) >= count_tokens(one) - 1


@given(st.text(min_size=1))
def test_every_text_has_at_least_one_token(text: str) -> None:
    assert count_tokens(text) >= 1


def test_lone_surrogates_are_counted() -> None:
    assert count_tokens("\ud800") >= 1


def test_a_character_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    worked_out = []
    estimate = tokens._estimate
    monkeypatch.setattr(tokens, "_estimate", lambda text: worked_out.append(text) or estimate(text))
    tokens._of_a_character.cache_clear()
    assert [count_tokens(character) for character in "語a語a語"] == [estimate("語"), estimate("a")] * 2 + [
        estimate("語")
    ]
    assert worked_out == ["語", "a"]


@given(st.characters())
def test_a_cached_character_has_the_same_count(character: str) -> None:
    assert count_tokens(character) == tokens._estimate(character)
