"""The blocks of README and of every page work when they are pasted into a fresh shell in a fresh clone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blocks import PAGES, ROOT, Block, all_blocks, assert_shown, blocks
from tests.services.tools import free_port
from tools import toolchain

GENERATIONS = "needs a bucket; tests/unit/aws_lambda/test_generations_commands.py runs these commands"
AWS = "needs an AWS account; `make e2e` deploys into an emulator"
OPEN_WEBUI = "needs Open WebUI, and models from Ollama's registry"
SYSTEMD = "needs root and a running systemd"
COPYING = "needs PostgreSQL; tests/unit/cli/test_cli_copy.py runs these commands"
DOCKER = "needs Docker, images and models; tests/containers brings the file up"
FILES = "tests/integration/test_backups_of_files.py runs these commands, beside a service"
DATABASES = "needs PostgreSQL; tests/integration/test_backups_of_databases.py runs these commands"
# The only blocks of commands that are not run, by page and how they begin, with the reason.
NOT_RUN = {
    ("README.md", "make test"): "runs this test",
    ("docs/backup.md", "cragside copy --to"): FILES,
    ("docs/backup.md", "cragside copy --from"): FILES,
    ("docs/backup.md", "cp -a"): FILES,
    ("docs/backup.md", "mv"): FILES,
    ("docs/backup.md", "install -d"): SYSTEMD,
    ("docs/backup.md", "cd /var/backups"): SYSTEMD,
    ("docs/backup.md", "umask 077\ndocker"): DOCKER,
    ("docs/backup.md", "docker compose -f docker-compose.local.yml stop"): DOCKER,
    ("docs/backup.md", "export PGHOST"): DATABASES,
    ("docs/backup.md", "umask 077\npg_dump"): DATABASES,
    ("docs/backup.md", "pg_restore"): DATABASES,
    ("docs/backup.md", "cragside repair"): DATABASES,
    ("docs/model-hosts.md", "export RAG_MODEL_HOST"): "needs a model host and its key",
    ("docs/model-hosts.md", "export HTTPS_PROXY"): "needs a proxy, and a model host behind it",
    ("docs/model-hosts.md", "export RAG_RERANK_URL"): "needs a rerank endpoint",
    ("docs/compose.md", "cp .env.example"): DOCKER,
    ("docs/compose.md", "TOKEN="): DOCKER,
    ("docs/aws-knowledge.md", "aws lambda invoke"): AWS,
    ("docs/deployment.md", "make bootstrap"): AWS,
    ("docs/generations.md", "cragside generations list"): GENERATIONS,
    ("docs/generations.md", "cragside generations forget"): GENERATIONS,
    ("docs/deployment.md", "make deploy ENV=staging"): AWS,
    ("docs/pipeline.md", "make pipeline"): AWS,
    ("docs/deployment.md", "aws secretsmanager"): AWS,
    ("docs/how-to/extras.md", "make wheel"): "docs/documents.md has these commands, with another extra",
    ("docs/how-to/open-webui.md", "cragside serve"): OPEN_WEBUI,
    ("docs/how-to/open-webui.md", "export RAG_API_TOKEN"): "needs Docker",
    ("docs/how-to/systemd.md", "useradd"): SYSTEMD,
    ("docs/how-to/systemd.md", "systemctl daemon-reload"): SYSTEMD,
    ("docs/how-to/systemd.md", "install -d -o cragside"): SYSTEMD,
    ("docs/how-to/uninstall.md", "systemctl disable"): SYSTEMD,
    (
        "docs/postgresql.md",
        "export POSTGRES_URI",
    ): "needs PostgreSQL; tests/integration/test_on_postgres.py runs these commands",
    ("docs/postgresql.md", "export RAG_GRAPH_STORAGE"): "needs PostgreSQL with AGE",
    (
        "docs/qdrant.md",
        "export QDRANT_URL",
    ): "needs PostgreSQL and Qdrant; tests/integration/test_on_qdrant.py is on a stand-in",
    ("docs/redis.md", "export REDIS_URI"): "needs PostgreSQL and Redis; tests/integration/test_on_redis.py is on both",
    ("docs/neo4j.md", "export POSTGRES_URI"): "needs Neo4j; tests/integration/test_on_neo4j.py runs these commands",
    ("docs/neo4j.md", "cragside repair"): "needs Neo4j; tests/integration/test_on_neo4j.py runs this command",
    ("docs/how-to/move-to-postgresql.md", "export TEAM"): COPYING,
    ("docs/how-to/move-to-postgresql.md", "cragside copy"): COPYING,
    ("docs/how-to/move-to-postgresql.md", "cragside bake"): COPYING,
    ("docs/tutorial.md", "ollama pull"): OPEN_WEBUI,
    ("docs/watching.md", "export RAG_TRACES"): "needs a collector; tests/unit/traces has one",
}
# The pages of which no block is run, with the reason.
PAGES_NOT_RUN = {"docs/runbook.md": AWS}
# What a page takes for granted.
PREMISES = {
    "docs/how-to/uninstall.md": "make wheel\nuv tool install dist/cragside-*.whl\ncragside ingest SECURITY.md\n",
    "docs/plugins.md": "mkdir -p src/plugins/rag\n",
}
# What each page has to have shown at its end, beside the output that it prints itself.
PRINTED = {
    "README.md": (
        '"outcome":"new"',
        "[1] Cragside - notes/cragside.md",
        '"verdict": "local"',
        '"by":"relevance"',
        '"entity":{"name":"Cragside"',
        "Assistant: Redis has port 6380 here.",
    ),
    "docs/baked-stores.md": (),
    "docs/deployment.md": ("cragside-dev-service.template.json",),
    "docs/documents.md": ("tesserocr",),
    "docs/how-to/move.md": ("The lamp is lit at nine.", "moved"),
    "docs/how-to/several-users.md": ("boat.md", "ada", "refused the token"),
    "docs/how-to/troubleshooting.md": ("pending",),
    "docs/how-to/uninstall.md": ("Uninstalled 1 executable: cragside",),
    "docs/how-to/upgrade.md": ("Installed 1 executable: cragside", "cragside "),
    "docs/plugins.md": (),
    "docs/tutorial.md": (
        "Ada Grant keeps the lighthouse",
        "due in March",
        "does not run on Sundays",
        "none of it above 0.6",
    ),
}
# Output of a command that a page only names: tests/e2e compares it.
OTHER_OUTPUT = {("README.md", "ministack")}
# What a script that fails has left running.
ENDING_JOBS = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
# A shell that does not know the project, only the way to the package registries.
OURS = ("RAG_", "OLLAMA_", "SEARXNG_", "XDG_", "MAKE", "MFLAGS", "PYTHON", "UV_PROJECT", "UV_TOOL", "VIRTUAL_ENV")


def is_run(block: Block) -> bool:
    if block.page in PAGES_NOT_RUN:
        return False
    return not any(block.page == page and block.text.startswith(beginning) for page, beginning in NOT_RUN)


def run_blocks(page: str) -> list[Block]:
    return [block for block in blocks(page, "sh") if is_run(block)]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """The files of this checkout, and the uv that `make` installs at its first run."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()]
    here = tmp_path / "cragside"
    shutil.copytree(ROOT, here, ignore=shutil.ignore_patterns(*ignored, ".git"))
    uv = toolchain.uv()
    assert uv, "uv was not found; `make check` installs it"
    (here / ".uv/bin").mkdir(parents=True)
    (here / ".uv/bin/uv").symlink_to(uv)
    yield here
    # 1.6 GB of environments and layers, and a baked store that may not be written.
    subprocess.run(["chmod", "-R", "u+w", here], check=True)
    shutil.rmtree(tmp_path)


def fresh_environment(home: Path, clone: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    path = [home / ".local/bin", Path(sys.executable).parent, clone / ".uv/bin", os.environ["PATH"]]
    uv = [str(clone / ".uv/bin/uv"), "cache", "dir"]
    return {
        **kept,
        "PATH": os.pathsep.join(map(str, path)),
        "HOME": str(home),
        "UV_CACHE_DIR": subprocess.run(uv, capture_output=True, text=True, check=True).stdout.strip(),
        "OLLAMA_HOST": f"127.0.0.1:{free_port()}",
    }


@pytest.mark.guides
@pytest.mark.enable_socket
@pytest.mark.parametrize("page", [page for page in PAGES if run_blocks(page)])
def test_the_blocks_of_a_page_run_in_a_fresh_shell(page: str, tmp_path: Path, clone: Path) -> None:
    commands = PREMISES.get(page, "") + "".join(block.text for block in run_blocks(page))
    script = ENDING_JOBS + commands.replace("8642", str(free_port()))
    (tmp_path / "home").mkdir()
    ran = subprocess.run(
        ["bash", "-e", "-m", "-c", script],
        cwd=clone,
        env=fresh_environment(tmp_path / "home", clone),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout
    for text in PRINTED[page]:
        assert text in ran.stdout, f"not printed: {text}"
    for shown in blocks(page, "text"):
        if (page, shown.first_line.split()[0]) not in OTHER_OUTPUT:
            command, _, output = shown.text.partition("\n")
            assert_shown(output if command.startswith("$ ") else shown.text, ran.stdout)


@pytest.mark.guides
@pytest.mark.parametrize("block", all_blocks("python"), ids=lambda block: f"{block.page}: {block.first_line}")
def test_a_block_of_python_runs(block: Block, tmp_path: Path) -> None:
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "OLLAMA_HOST": f"127.0.0.1:{free_port()}"}
    ran = subprocess.run(
        [sys.executable, "-c", block.text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
