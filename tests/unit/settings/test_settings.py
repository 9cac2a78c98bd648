import pytest

from cragside.settings import Settings, load_settings, variable_of


@pytest.mark.parametrize("empty", ["", "  "])
@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_an_empty_variable_counts_as_unset(name: str, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {variable_of(name): empty}
    monkeypatch.setenv(variable_of(name), empty)
    assert getattr(load_settings(environment), name) == getattr(load_settings({}), name)
    monkeypatch.delenv(variable_of(name))
    assert load_settings(environment) == load_settings({})


def test_a_blank_around_the_token_does_not_lock_everybody_out() -> None:
    token = load_settings({"RAG_API_TOKEN": " s3cret \n"}).api_token
    assert token is not None
    assert token.get_secret_value() == "s3cret"
