"""What the Makefile would run."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def made(*arguments: str) -> str:
    return run("--dry-run", *arguments, check=True).stdout


def run(*arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    """Make's output for these arguments. A make that runs the tests passes nothing on to it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=check)


@pytest.mark.parametrize("target", ["synth", "diff", "deploy", "destroy"])
def test_layers_are_built_for_the_context_that_is_synthesised(target: str) -> None:
    lines = made(target, "ENV=prod", "ARGS=-c python=3.13 -c knowledge=build/store").splitlines()
    (choosing,) = [line for line in lines if "infra.environments" in line]
    (using,) = [line for line in lines if "infra.app" in line or f"aws-cdk/bin/cdk {target} " in line]
    for line in (choosing, using):
        assert "-c env=prod " in line
        assert " -c python=3.13 -c knowledge=build/store" in line


@pytest.mark.parametrize("target", ["deploy", "destroy"])
def test_stacks_that_would_be_left_are_looked_for_before_anything_is_built(target: str) -> None:
    first, *_ = made(target, "ENV=prod", "ARGS=-c file=mine.toml").splitlines()
    assert "python -m infra.leftover_stacks -c env=prod " in first
    assert first.endswith(" -c file=mine.toml")


def test_what_cannot_be_deployed_is_refused_before_anything_is_built() -> None:
    lines = made("synth", "ENV=nope", "--what-if=uv.lock").splitlines()
    (refusing, *_) = [at for at, line in enumerate(lines) if "python -m infra.environments -c env=nope " in line]
    assert not [line for line in lines[:refusing] if "bake" in line or "layers" in line]
    refused = run("synth", "ENV=nope")
    assert "There is no environment 'nope'. Name dev, staging or prod: -c env=dev" in refused.stderr
    assert refused.returncode == 2
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("FILE=mine.toml", 'make has no variable FILE: say ARGS="-c file=FILE.toml" or '),
        (
            "KNOWLEDGE=none",
            'make has no variable KNOWLEDGE: say ARGS="-c file=FILE.toml" or ',
        ),
        ("ARGS=-c env=prod", "ARGS names another environment: say ENV=prod"),
        ("ARGS=-c knowledge=none --milliseconds 9", "ARGS has no --milliseconds: say make costs MILLISECONDS=NUMBER"),
    ],
)
def test_a_variable_that_would_change_nothing_is_refused(said: str, reason: str) -> None:
    refused = run("--dry-run", "deploy", said)
    assert reason in refused.stderr
    assert (refused.returncode, refused.stdout) == (2, "")


def test_variables_of_a_pipeline_are_none_of_make_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FILE", "mine.toml")
    assert "mine.toml" not in made("deploy")


def test_templates_of_another_shape_are_removed_before_the_synthesis() -> None:
    lines = made("synth", "ENV=prod").splitlines()
    removing = lines.index("rm -f build/cdk/prod/cragside-*.json")
    assert "python -m infra.app " in lines[removing + 1]


def test_costs_are_calculated_with_a_time_of_ones_own() -> None:
    *_, calculating = made("costs", "ENV=prod", "MILLISECONDS=5343", "ARGS=-c knowledge=none").splitlines()
    assert calculating.endswith("infra.costs build/cdk/prod --milliseconds 5343")
    assert made("costs").splitlines()[-1].rstrip().endswith("infra.costs build/cdk/dev")


def test_a_container_engine_is_looked_for_before_anything_is_built() -> None:
    first, *_ = made("sam").splitlines()
    assert first.endswith(" python infra/engine.py")


@pytest.mark.parametrize("target", ["smoke", "logs"])
def test_what_is_deployed_is_asked_for_in_its_environment(target: str) -> None:
    (line,) = made(target, "ENV=staging", "ARGS=--since 5").splitlines()[-1:]
    assert line.endswith(f"-m infra.{target} -c env=staging --since 5")


def test_destroying_needs_no_word_about_the_knowledge_and_deploying_does() -> None:
    assert made("destroy", "ENV=prod").count("-c env=prod -c destroying=true") == 3
    assert "destroying" not in made("deploy", "ENV=prod")


@pytest.mark.parametrize(
    "source", ["settings/model.py", "adapters/lightrag/storages/sqlite/graph.py", "adapters/embedded/lexicon.py"]
)
def test_the_demo_store_is_rebuilt_when_its_code_changes(source: str, tmp_path: Path) -> None:
    store = tmp_path / "baked.json"
    store.touch()
    bake = [f"DEMO_STORE={tmp_path}", str(store)]
    assert "cragside bake" not in made(*bake)
    assert "cragside bake" in made(f"--what-if=layers/core/python/cragside/{source}", *bake)
    assert "cragside bake" in made("--what-if=uv.lock", *bake)


def test_a_requested_emulator_test_must_run() -> None:
    assert "E2E=required" in made("e2e")
    assert "E2E=optional" in made("e2e", "E2E=optional")


def test_requested_tests_of_servers_must_run() -> None:
    assert "SERVERS=required" in made("test-services")
    assert "SERVERS=optional" in made("test-services", "SERVERS=optional")
    assert "not (services or real_ollama" in made("test")
