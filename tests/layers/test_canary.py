"""A question, asked of the layers alone."""

import asyncio
import platform
import shutil
import sys

import pytest

from tests.layers.built_layers import ROOT
from tests.services.stub_ollama import StubOllama
from tests.services.stub_searxng import StubSearxng
from tools.toolchain import interpreter

pytestmark = [
    pytest.mark.layers,
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the layers are for Linux on x86_64"
    ),
]

BRIDGE = {"title": "The bridge", "url": "https://example.org/bridge", "content": "The Queensferry bridge: 2,467 m."}


async def canary(built, *arguments, folders=None):
    layers = folders or [built.folder(layer) / "python" for layer in ("core", "lightrag", "runtime")]
    process = await asyncio.create_subprocess_exec(
        *[interpreter(built.python), "-I", "-S", "-B", str(ROOT / "layers/canary.py")],
        *map(str, [ROOT / "functions/enrich", *layers]),
        *arguments,
        env={},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_the_layers_alone_answer_with_cited_evidence_on_either_route(x86_64):
    async with StubOllama(models=("qwen2.5:7b",)) as ollama, StubSearxng(BRIDGE) as searxng:
        code, out, err = await canary(x86_64, "--ollama", ollama.url, "--searxng", searxng.url)
        assert code == 0, err
        assert "evidence from harbour.md cited" in out
        assert ollama.asked("/api/chat")
        assert searxng.asked


WRITABLE = ("core", "lightrag", "drivers", "parsers", "traces", "runtime")
WITH = ("--with", "drivers", "--with", "parsers", "--with", "traces")


async def test_a_function_with_a_writable_store_has_its_drivers_and_parsers(x86_64, tmp_path):
    folders = writable(x86_64, tmp_path)
    code, out, err = await canary(x86_64, *WITH, folders=folders)
    assert code == 0, err
    assert "evidence from harbour.md cited" in out


@pytest.mark.parametrize(
    ("layer", "missing"),
    [("drivers", "asyncpg"), ("drivers", "neo4j"), ("parsers", "babel"), ("traces", "opentelemetry")],
)
async def test_the_canary_notices_what_these_lack(x86_64, tmp_path, layer, missing):
    folders = writable(x86_64, tmp_path / "certificates")
    folders[WRITABLE.index(layer)] = without(x86_64.folder(layer) / "python", missing, tmp_path)
    code, out, err = await canary(x86_64, *WITH, folders=folders)
    assert code != 0, out
    assert missing in err


@pytest.mark.parametrize("missing", ["wordllama", "langchain_ollama", "tokenizers", "langgraph/pregel"])
async def test_the_canary_notices_what_is_missing(x86_64, tmp_path, missing):
    folders = [x86_64.folder(layer) / "python" for layer in ("core", "lightrag", "runtime")]
    folders[1] = without(folders[1], missing, tmp_path)
    code, out, err = await canary(x86_64, folders=folders)
    assert code != 0, out
    assert missing.split("/")[0] in err
    assert "cited" not in out


def writable(built, place):
    """The layers of a function with a writable store, with certificates of its own.

    It reads documents in a process of its own. Such a process runs the start-up files of the interpreter's
    installation, and on some machines these add a certificate to the first certifi that they find.
    """
    folders = [built.folder(layer) / "python" for layer in WRITABLE]
    layer = WRITABLE.index("lightrag")
    certificates = folders[layer] / "certifi"
    folders[layer] = without(folders[layer], "certifi", place)
    shutil.copytree(certificates, folders[layer] / "certifi")
    return folders


def without(folder, missing, place):
    """The folder's entries, less one of them or one of an entry's own."""
    place = place / "python"
    place.mkdir(parents=True)
    package, _, module = missing.partition("/")
    for path in folder.iterdir():
        if path.name != package:
            (place / path.name).symlink_to(path)
        elif module:
            (place / package).mkdir()
            for inner in path.iterdir():
                if inner.name != module:
                    (place / package / inner.name).symlink_to(inner)
    return place
