import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from synthesis import Synthesiser

from infra.artifacts import artifacts_of

pytestmark = pytest.mark.infra

LAYERS = ("core", "lightrag")


def test_an_unknown_environment_ends_with_the_three_names(
    synthesise: Synthesiser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from infra.app import main

    assert main(["-c", "env=production", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "There is no environment 'production'. Name dev, staging or prod: -c env=dev, or ENV=dev for make. A new name "
        "takes the values of one of them: -c env=pr-123 -c like=dev\n"
    )


def test_a_misspelt_key_of_the_cdk_s_command_line_ends_the_synthesis(tmp_path: Path) -> None:
    """The command line hands its own keys over too."""
    said = {"aws:cdk:enable-path-metadata": True, "@aws-cdk/core:newStyleStackSynthesis": True, "env": "dev", "nope": 1}
    ended = subprocess.run(
        [sys.executable, "-m", "infra.app"],
        env={**os.environ, "CDK_CONTEXT_JSON": json.dumps(said), "CDK_OUTDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("'nope' is not a key. The keys are env, like, file, ")
    assert not list(tmp_path.iterdir())


def test_a_value_that_does_not_fit_is_named(
    synthesise: Synthesiser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from infra.app import main

    assert main(["-c", "env=dev", "-c", "python=2.7", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "python: '2.7' is not '3.11', '3.12' or '3.13'\n"


def test_the_context_changes_an_environment(synthesise: Synthesiser) -> None:
    from infra.app import environment_of, new_app

    context = {"env": "staging", "python": "3.13", "knowledge": f"s3://some-bucket/demo#{'ab' * 32}"}
    environment = environment_of(new_app(context))
    assert environment.python == "3.13"
    assert environment.knowledge is not None
    assert environment.knowledge.model_dump(exclude_none=True) == {"uri": "s3://some-bucket/demo", "sha256": "ab" * 32}


def test_prod_is_not_synthesised_without_a_word_about_its_knowledge(
    synthesise: Synthesiser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from infra.app import main

    assert main(["-c", "env=prod", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("prod names no knowledge: ")
    assert not list(tmp_path.iterdir())


def test_nothing_has_to_be_built_to_destroy(
    synthesise: Synthesiser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from infra import app

    monkeypatch.setattr(app, "artifacts_of", lambda environment: artifacts_of(environment, tmp_path))
    for name in ("enrich", "index"):
        (tmp_path / "functions" / name).mkdir(parents=True)
        (tmp_path / "functions" / name / "handler.py").write_text(f"# {name}")
    for knowledge in ([], ["-c", "knowledge=generations"]):
        out = tmp_path / f"out{len(knowledge)}"
        said = ["-c", "env=prod", "-c", "destroying=true", *knowledge, "--out", str(out)]
        assert app.main(said) == 0
        assert (out / "cragside-prod-service.template.json").exists()
        assert (out / "cragside-prod-knowledge.template.json").exists() is bool(knowledge)


def test_the_context_selects_the_artifacts(
    synthesise: Synthesiser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from infra import app

    monkeypatch.setattr(app, "artifacts_of", lambda environment: artifacts_of(environment, tmp_path))
    built = tmp_path / "build" / "layers"
    folders = [tmp_path / "functions" / "enrich", *(built / f"{name}-3.12-x86_64/python" for name in LAYERS)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "module.py").touch()
    dev = ["-c", "env=dev", "-c", "knowledge=none", "--out", str(tmp_path / "out")]
    assert app.main(dev) == 0
    assert app.main([*dev, "-c", "python=3.13", "-c", "architecture=arm64"]) == 2
    assert "`make layers ARCH=arm64 PYTHON_VERSION=3.13`" in capsys.readouterr().err
    for name in LAYERS:
        (built / f"{name}-3.12-x86_64").rename(built / f"{name}-3.13-arm64")
    assert app.main([*dev, "-c", "python=3.13", "-c", "architecture=arm64"]) == 0
