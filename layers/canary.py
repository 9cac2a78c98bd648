"""Asks a function that has nothing but the built layers a question, as Lambda would: fails if they lack something.

    python3.12 -I -S -B layers/canary.py FOLDER... [--with drivers] [--with parsers] [--ollama URL] [--searxng URL]

The folders are what the path holds beside the standard library: the function, its layers, and the stand-in for what
Lambda's runtime brings. With a model server and a search engine a second question takes their route. `--with` names the
further layers, and has what they are for imported, and a page parsed.
"""

import argparse
import ast
import asyncio
import importlib
import json
import os
import pkgutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

# What runs elsewhere: the command line, the proxy's server, the Model Context Protocol, hosts with OpenAI's API,
# reading repositories and pictures. The layers lack what it imports.
ELSEWHERE = (
    "cragside.entrypoints.cli",
    "cragside.entrypoints.metrics",
    "cragside.entrypoints.mcp",
    "cragside.entrypoints.proxy",
    "cragside.plugins",
    "cragside.adapters.git",
    "cragside.adapters.openai",
    "cragside.adapters.documents.ocr",
    "cragside.adapters.documents.old_office",
)
# What needs a layer that a function with a baked store has not.
OF_A_LAYER = {
    "drivers": (
        "cragside.adapters.postgres_preferences",
        "cragside.databases.postgres",
        "cragside.store.queues.postgres",
        "cragside.store.backends.postgres",
        "cragside.store.postgres",
        "cragside.store.outside",
        "cragside.databases.neo4j",
        "cragside.databases.qdrant",
        "cragside.databases.redis",
    ),
    "parsers": (
        "cragside.adapters.documents.decoding",
        "cragside.adapters.documents.hidden_text",
        "cragside.adapters.documents.html",
        "cragside.adapters.documents.markdown_syntax",
        "cragside.adapters.documents.office_objects",
        "cragside.adapters.documents.packages",
        "cragside.adapters.documents.pdf",
        "cragside.adapters.documents.rich_text",
        "cragside.adapters.documents.spreadsheets",
        "cragside.adapters.documents.word",
    ),
    "traces": ("cragside.adapters.otel",),
}
TOKEN = "canary"  # noqa: S105 - of a function that nobody else reaches
QUESTION = "/rag When was the lamp in the harbour of Alnwick lit?"
# Rules rewrite a shorter one without the model.
LONG_QUESTION = (
    "We drove over it last summer on our way to the islands, and neither my brother nor I could say it when our mother "
    "asked us that evening. How long is the bridge at Queensferry?"
)
SOURCE = "harbour.md"
TEXT = "The lamp in the harbour of Alnwick was lit in 1878. It was an arc lamp, and water power drove it.\n"
PAGE = f"<html><body><nav>navigation</nav><article><h1>The lamp</h1><p>{TEXT * 5}</p></article></body></html>".encode()


class _Context:
    """Context that Lambda hands over beside the event."""

    function_name = "canary"
    function_version = "$LATEST"
    memory_limit_in_mb = 1769
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:canary"
    aws_request_id = "6f1c2b5e-0000-4000-8000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def main() -> None:
    """Import, index, ask, and check where everything came from."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--with", action="append", choices=OF_A_LAYER, default=[], dest="having")
    parser.add_argument("--ollama")
    parser.add_argument("--searxng")
    arguments = parser.parse_args()
    folders = [str(folder.resolve()) for folder in arguments.folders]
    if any("site-packages" in place for place in sys.path):
        sys.exit("Run the canary with -I -S: packages of this interpreter are on its path.")
    sys.path += folders
    with redirect_stdout(sys.stderr):  # the function's log and metrics
        lacking = tuple(part for layer, parts in OF_A_LAYER.items() if layer not in arguments.having for part in parts)
        lacking += ELSEWHERE
        modules = sorted(_modules(lacking))
        for module in modules:
            importlib.import_module(module)
        imported = {*(library for module in modules for library in _imports(module))}
        libraries = sorted(library for library in imported if not library.startswith(lacking))
        for library in libraries:
            importlib.import_module(library)
        with tempfile.TemporaryDirectory() as home:
            asyncio.run(_index(home))
            _check(_handled(home), "local")
            if arguments.ollama and arguments.searxng:
                environment = {"OLLAMA_BASE_URL": arguments.ollama, "SEARXNG_HOST": arguments.searxng}
                _check(asyncio.run(_asked(home, environment)), "web")
        if "parsers" in arguments.having:
            asyncio.run(_parse())
    strangers = sorted(_strangers(folders))
    if strangers:
        sys.exit(f"Not from the layers: {', '.join(strangers)}")
    print(f"{len(modules)} modules and {len(libraries)} libraries imported, evidence from {SOURCE} cited")


def _modules(lacking: tuple[str, ...]) -> Iterator[str]:
    import cragside

    yield "cragside"
    for module in pkgutil.walk_packages(cragside.__path__, "cragside."):
        if not module.name.startswith(lacking):
            yield module.name


def _imports(module: str) -> Iterator[str]:
    """Return the modules that a module has to be able to import, in its functions too."""
    path = sys.modules[module].__file__
    if path:
        yield from _needed(ast.parse(Path(path).read_text(encoding="utf-8")))


def _needed(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
    elif not _optional(node):
        for child in ast.iter_child_nodes(node):
            yield from _needed(child)


def _optional(node: ast.AST) -> bool:
    """Return True if imports in here are for type checkers alone, or optional."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.Try) and any("ImportError" in ast.unparse(h.type) for h in node.handlers if h.type)


async def _parse() -> None:
    """Have the child process read a page."""
    from cragside.adapters.documents.loader import FileLoader

    loader = FileLoader()
    found = await loader.load(PAGE, name="lamp.html")
    await loader.close()
    if "arc lamp" not in found.text or "navigation" in found.text:
        sys.exit(f"Parsing: {found}")


async def _index(home: str) -> None:
    from cragside.bootstrap import Container
    from cragside.domain.document import SourceText
    from cragside.settings import load_settings

    container = Container(load_settings({"RAG_HOME": home}))
    repository = (await container.workspaces.open("default")).passages
    (indexed,) = await repository.save_documents([SourceText(SOURCE, TEXT)])
    await container.close()
    if indexed.status != "indexed":
        sys.exit(f"Indexing: {indexed}")


def _handled(home: str) -> dict[str, Any]:
    """The answer to an event of an HTTP API."""
    os.environ.update({"RAG_HOME": home, "RAG_API_TOKEN": TOKEN, "POWERTOOLS_TRACE_DISABLED": "true"})
    handler = importlib.import_module("handler").handler
    event = {
        "version": "2.0",
        "rawPath": "/v1/enrich",
        "rawQueryString": "",
        "headers": {"host": "localhost", "content-type": "application/json", "authorization": f"Bearer {TOKEN}"},
        "requestContext": {"http": {"method": "POST", "path": "/v1/enrich", "sourceIp": "127.0.0.1"}},
        "body": json.dumps({"prompt": QUESTION}),
        "isBase64Encoded": False,
    }
    answer = handler(event, _Context())
    if answer["statusCode"] != 200:
        sys.exit(f"The function answered {answer['statusCode']}: {answer['body']}")
    body: dict[str, Any] = json.loads(answer["body"])
    return body


async def _asked(home: str, environment: dict[str, str]) -> dict[str, Any]:
    """The answer of the application with a model server and a search engine."""
    from cragside.application.contract import enhanced_request
    from cragside.bootstrap import Container
    from cragside.settings import load_settings

    container = Container(load_settings({"RAG_HOME": home, **environment}))
    await container.prepare()
    body = enhanced_request(await container.enricher.enrich({"prompt": f"/rag {LONG_QUESTION}"}))
    await container.close()
    return body


def _check(answer: dict[str, Any], verdict: str) -> None:
    found = answer["metadata"]["rag_context"]
    if found["verdict"] != verdict or found["degraded"] or "[1]" not in answer["prompt"]:
        sys.exit(f"Expected evidence ({verdict}), cited as [1]; got: {json.dumps(answer)[:2000]}")


def _strangers(folders: list[str]) -> Iterator[str]:
    """Modules that are neither the standard library's nor the folders'."""
    allowed = (sys.prefix, sys.base_prefix, *folders)
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path and path != __file__ and not path.startswith(allowed):
            yield name


if __name__ == "__main__":
    main()
