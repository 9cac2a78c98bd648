from hypothesis import given
from hypothesis import strategies as st

from cragside.store.engine import CharacterTokens


def test_a_token_is_the_same_wherever_its_characters_stand() -> None:
    tokens = CharacterTokens().encode("abcdefabc")
    assert tokens[0] == tokens[2] == tokens[-1] != tokens[1]
    assert len(list(tokens)) == len(tokens) == 3


@given(st.text())
def test_encoding_is_reversible(text: str) -> None:
    assert CharacterTokens().decode(CharacterTokens().encode(text)) == text


@given(st.text(max_size=50), st.integers(0, 20))
def test_a_cut_of_the_tokens_is_a_beginning_of_the_text(text: str, tokens: int) -> None:
    cut = CharacterTokens().encode(text)[:tokens]
    assert text.startswith(CharacterTokens().decode(cut))
    assert len(CharacterTokens().decode(cut)) == min(len(text), 3 * tokens)
