"""The console's files: how they are served, and what holds among them."""

import json
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import get_args

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.domain.candidates import Dropped
from cragside.domain.document import EvidenceSource
from cragside.domain.indexing import DocumentStatus, Stage
from cragside.domain.preferences import MODES, PROMPTS, RANGES, STRATEGIES
from cragside.domain.verdict import Verdict
from cragside.entrypoints.console import files
from cragside.entrypoints.console.files import static_files
from cragside.entrypoints.findings import State
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.http.v1.explain_models import StepBody
from cragside.settings import Settings
from tools.vendor_console import shipped

STATIC = Path(files.__file__).parent / "static"
OURS = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
MOST_COMPRESSED_BYTES = 250_000


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    container = Container(Settings(home=tmp_path, api_token="secret"))  # type: ignore[call-arg]
    transport = httpx.ASGITransport(create_app(container))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client
    await container.close()


@pytest.mark.parametrize("path", sorted(static_files()))
async def test_each_file_needs_no_token_and_has_a_strict_policy(client: httpx.AsyncClient, path: str) -> None:
    reply = await client.get(f"/console/{path}")
    assert (reply.status_code, reply.content) == (200, (STATIC / path).read_bytes())
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_the_console_begins_with_its_page(client: httpx.AsyncClient) -> None:
    page = await client.get("/console/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert (await client.get("/console")).headers["location"] == "console/"
    assert (await client.get("/", headers={"Accept": "text/html"})).headers["location"] == "console/"


async def test_other_clients_are_not_led_to_the_console(client: httpx.AsyncClient) -> None:
    assert (await client.get("/", headers={"Accept": "application/json"})).status_code == 404


async def test_a_file_that_did_not_change_is_not_sent_again(client: httpx.AsyncClient) -> None:
    first = await client.get("/console/app.js")
    again = await client.get("/console/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_a_client_without_compression_gets_the_plain_file(client: httpx.AsyncClient) -> None:
    reply = await client.get("/console/app.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in reply.headers
    assert reply.content == (STATIC / "app.js").read_bytes()


@pytest.mark.parametrize("path", ["../files.py", "..%2ffiles.py", "%2e%2e/files.py", "/etc/passwd", "vendor", "no.js"])
async def test_there_is_nothing_but_the_files(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(f"/console/{path}")).status_code == 404


def test_a_file_of_an_unknown_type_does_not_keep_the_others_from_being_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "static").mkdir()
    for name in ("app.js", "app.js~", "README"):
        (tmp_path / "static" / name).write_text("")
    monkeypatch.setattr(files, "files", lambda _: tmp_path)
    served = {path: file.media_type for path, file in static_files.__wrapped__().items()}
    unknown = "application/octet-stream"
    assert served == {"app.js": "text/javascript; charset=utf-8", "app.js~": unknown, "README": unknown}


def test_all_files_together_are_small() -> None:
    assert sum(len(file.packed) for file in static_files().values()) < MOST_COMPRESSED_BYTES


def test_nothing_is_loaded_from_elsewhere_and_no_script_is_in_the_page() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert all(
        not address.startswith(("http", "//", "data:")) for address in re.findall(r"""(?:src|href)="([^"]+)""", page)
    )
    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL) == [""]
    assert "style=" not in page
    assert " on" not in re.sub(r">[^<]*<", "><", page)


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(STATIC)))
def test_no_script_makes_mark_up_from_text(path: Path) -> None:
    script = path.read_text()
    for risky in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "dangerouslySet",
        "document.write",
        "eval(",
        " style=",
    ):
        assert risky not in script
    for imported in re.findall(r'from "(\.[^"]+)"', script):
        assert (path.parent / imported).resolve().is_file()


def keys_of(language: str) -> set[str]:
    return set(re.findall(r'^  "([^"]+)":', (STATIC / f"texts/{language}.js").read_text(), re.MULTILINE))


def test_every_language_has_every_text() -> None:
    assert keys_of("en") == keys_of("de")


# Some keys are made of a beginning and a value: `step.${step.name}`. These are their values.
VALUES: dict[str, Iterable[str]] = {
    "additions.phase": ("waiting", "indexing", "refused", "failed", "stopped"),
    "addition.phase": ("waiting", "reading", "indexing", "done", "refused", "failed", "stopped"),
    "candidate.dropped": get_args(Dropped),
    "components.state": get_args(State),
    "dead.stage": get_args(Stage),
    "documents.column": ("name", "file_type", "passages", "added", "status"),
    "documents.status": get_args(DocumentStatus),
    # Other graders have names of their own, which need no text.
    "grader": ("embedded",),
    "nav": ("ask", "documents", "graph", "memory", "settings"),
    "settings.mode": MODES,
    "settings.number": RANGES,
    "settings.prompts": PROMPTS,
    "settings.strategy": STRATEGIES,
    "source": get_args(EvidenceSource),
    "step": get_args(StepBody.model_fields["name"].annotation),
    "step.decide": get_args(StepBody.model_fields["next"].annotation),
    "store.size": ("documents", "passages", "entities", "relations"),
    "verdict": get_args(Verdict),
}


def test_every_text_is_used_and_every_used_text_is_there() -> None:
    scripts = "\n".join(path.read_text() for path in OURS if path.parent.name != "texts")
    assert set(re.findall(r"`([a-z_.]+)\.\$\{", scripts)) == VALUES.keys()
    made = {f"{beginning}.{value}" for beginning, values in VALUES.items() for value in values}
    # A word alone is a key only where a text is asked for; a literal with a point in it is one wherever it stands.
    asked = set(re.findall(r'\bt\(\s*"([^"]+)"', scripts))
    keys = keys_of("en")
    assert asked | made <= keys
    assert keys - asked - made - {key for key in keys if "." in key and f'"{key}"' in scripts} == set()


def test_the_licences_name_the_versions_of_the_lock_file() -> None:
    told = dict(
        re.findall(r"^([@a-z][\w@/.-]*) (\d+\.\d+\.\d+)$", (STATIC / "vendor/LICENSES.txt").read_text(), re.MULTILINE)
    )
    assert told == shipped()
    pinned = json.loads((Path(__file__).parents[3] / "tools/console_parts/package.json").read_text())["dependencies"]
    assert {name: pinned[name] for name in pinned.keys() & told.keys()} == {
        name: told[name] for name in pinned.keys() & told.keys()
    }
