"""Arguments of `sam local start-api`, from the templates of two shapes."""

import json
from pathlib import Path
from typing import Any

import pytest
from synthesis import SHAPES, Synthesised, Synthesiser

from infra.config import named
from infra.local import LocalContext, main
from tests import compose

pytestmark = pytest.mark.infra

NEO4J = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:neo4j-AbC123"
PASSWORDS = "CRAGSIDE_API_TOKEN=tok3n\nCRAGSIDE_POSTGRES_PASSWORD=pgpass\nCRAGSIDE_NEO4J_PASSWORD=n30pass\n"


@pytest.fixture(scope="module")
def baked(synthesise: Synthesiser) -> Synthesised:
    return synthesise(named("dev"))


@pytest.fixture(scope="module")
def hosted(synthesise: Synthesiser) -> Synthesised:
    neo4j = {"neo4j_uri": "neo4j://graph.internal:7687", "neo4j_password_secret_arn": NEO4J}
    managed = named("dev").changed(**SHAPES["managed"])
    return synthesise(managed.changed(servers={**managed.servers.model_dump(), **neo4j}))


def written(stack: Synthesised, folder: Path, passwords: str = PASSWORDS) -> tuple[dict[str, Any], dict[str, str], str]:
    """SAM's resources, the function's settings, and the arguments."""
    (folder / ".env").write_text(passwords)
    said = ["--out", str(folder / "sam"), "--env-file", str(folder / ".env")]
    assert main([str(stack.file.parent), *said]) == 0
    read = {name: (folder / "sam" / name).read_text() for name in ("template.json", "settings.json", "arguments")}
    return (
        json.loads(read["template.json"])["Resources"],
        json.loads(read["settings.json"])["Enrich"],
        read["arguments"],
    )


def test_the_function_and_its_layers_are_those_that_are_deployed(baked: Synthesised, tmp_path: Path) -> None:
    resources, _, arguments = written(baked, tmp_path)
    deployed = baked.properties("AWS::Lambda::Function")
    function = resources["Enrich"]["Properties"]
    for key in ("Handler", "Runtime", "Architectures", "MemorySize", "Timeout"):
        assert function[key] == deployed[key]
    assert function["Layers"] == deployed["Layers"]
    assert (Path(function["CodeUri"]) / "handler.py").is_file()
    layers = [Path(resources[layer["Ref"]]["Properties"]["ContentUri"]) for layer in function["Layers"]]
    assert [any((layer / name).is_dir() for name in ("python", "knowledge")) for layer in layers] == [True] * 3
    assert "--docker-network" not in arguments


def test_the_settings_are_those_that_are_deployed_but_for_the_secret(baked: Synthesised, tmp_path: Path) -> None:
    _, settings, _ = written(baked, tmp_path)
    deployed = baked.properties("AWS::Lambda::Function")["Environment"]["Variables"]
    assert settings == {
        **{key: value for key, value in deployed.items() if isinstance(value, str)},
        "RAG_API_TOKEN": "tok3n",
    }


def test_the_databases_are_those_of_the_compose_file(hosted: Synthesised, tmp_path: Path) -> None:
    resources, settings, arguments = written(hosted, tmp_path)
    given = dict(line.split("=", 1) for line in PASSWORDS.splitlines())
    for name in ("POSTGRES_URI", "NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD"):
        assert settings[name] == compose.filled_in(compose.services()["api"]["environment"][name], given)
    assert arguments.endswith("--docker-network cragside_stores")
    assert not [name for name in settings if name.endswith("_SECRET")]
    assert not {"OLLAMA_BASE_URL", "SEARXNG_HOST"} & settings.keys()
    # SAM ignores a setting that the template does not name.
    assert set(resources["Enrich"]["Properties"]["Environment"]["Variables"]) == set(settings)


def test_only_the_file_of_this_user_has_passwords(hosted: Synthesised, tmp_path: Path) -> None:
    written(hosted, tmp_path)
    for name in ("template.json", "arguments"):
        text = (tmp_path / "sam" / name).read_text()
        assert not [secret for secret in ("tok3n", "pgpass", "n30pass") if secret in text]
    assert (tmp_path / "sam/settings.json").stat().st_mode & 0o077 == 0


def test_a_database_without_its_password_is_named(
    hosted: Synthesised, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["--out", str(tmp_path / "sam"), "--env-file", str(tmp_path / "none")]
    assert main([str(hosted.file.parent), *said]) == 2
    assert "_SECRET: .env says no password" in capsys.readouterr().err


def test_a_token_is_made_where_there_is_none() -> None:
    first, second = LocalContext({}), LocalContext({"CRAGSIDE_API_TOKEN": ""})
    assert len(first.token) > 40
    assert first.token != second.token
