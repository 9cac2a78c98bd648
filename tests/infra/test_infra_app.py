from pathlib import Path

import pytest
from synthesis import Synthesiser

pytestmark = pytest.mark.infra


def test_an_unknown_environment_ends_with_the_three_names(
    synthesise: Synthesiser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from infra.app import main

    assert main(["-c", "env=production", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == ("There is no environment 'production'. Name dev, staging or prod: -c env=dev\n")


def test_a_value_that_does_not_fit_is_named(
    synthesise: Synthesiser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from infra.app import main

    assert main(["-c", "env=dev", "-c", "python=2.7", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "python: Input should be '3.11', '3.12' or '3.13'\n"


def test_the_context_changes_an_environment(synthesise: Synthesiser) -> None:
    from infra.app import environment_of, new_app

    context = {"env": "dev", "python": "3.13", "knowledge": f"s3://some-bucket/demo#{'ab' * 32}"}
    environment = environment_of(new_app(context))
    assert environment.python == "3.13"
    assert environment.knowledge is not None
    assert environment.knowledge.model_dump() == {"uri": "s3://some-bucket/demo", "sha256": "ab" * 32}
