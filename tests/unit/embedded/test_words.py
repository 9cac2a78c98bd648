from hypothesis import given
from hypothesis import strategies as st

from cragside.adapters.embedded.words import words


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=80))
def test_ascii_text_has_the_words_it_has_among_other_scripts(text: str) -> None:
    assert words(text) == words(f"{text} 漢")[:-1]
