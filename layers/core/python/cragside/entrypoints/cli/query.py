"""`cragside query` and `cragside graph`: find passages for a question, and entities of the graph."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.query import Ranking
from cragside.entrypoints.cli.target import Target, local_or_service
from cragside.entrypoints.cli.terminal import (
    json_option,
    notices,
    output,
    print_json,
    print_prose,
    print_result,
    printable,
)

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service


_PREVIEW = 300

_ARROWS = {"incoming": "<-", "outgoing": "->"}


@local_or_service
def query(
    target: Target,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The question.")] = None,
    question: Annotated[str | None, typer.Option("--q", hidden=True)] = None,
    top_k: Annotated[int, typer.Option(min=1, max=100, help="Most passages.")] = 8,
    by: Annotated[
        Ranking,
        typer.Option(help="What ranks the passages: relevance as for /rag, or similarity, which grades nothing."),
    ] = "relevance",
    min_relevance: Annotated[float | None, typer.Option(min=0, max=1, help="Least relevance of a passage.")] = None,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Least similarity of a passage. Default with --by similarity: RAG_SIMILARITY_THRESHOLD.",
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="LightRAG's way to retrieve: local, global, hybrid, naive or mix. Default: mix."),
    ] = None,
    repo_id: Annotated[str | None, typer.Option(help="Passages of this repository only.")] = None,
    path_prefix: Annotated[str | None, typer.Option(help="Passages of paths that begin so.")] = None,
    lang: Annotated[
        str | None, typer.Option(help="Code in this language (python), or a repository's files with this ending (py).")
    ] = None,
    graph: Annotated[bool, typer.Option("--graph", help="Show the entities around what was found, too.")] = False,
    as_json: Annotated[bool, json_option("what POST /v1/query answers")] = False,
) -> None:
    """Find the passages that are most relevant to a question, without a web search.

    Relevance is the probability that a passage is about the question. Similarity is the cosine of their vectors. For
    what a prompt would get, see `cragside enrich`.
    """
    asked = one_of(text, question, name="TEXT", flag="--q")
    if not asked or not asked.strip():
        raise ValidationError('Say what to look for: cragside query "who lit the lamp?"')
    conditions = _conditions(repo_id, path_prefix, lang)
    options = {
        "mode": mode,
        "min_relevance": min_relevance,
        "min_similarity": min_similarity,
        "filter": {"must": conditions} if conditions else None,
    }
    body: dict[str, Any] = {"query": asked, "by": by, "limit": top_k, "graph": graph}
    body |= {name: value for name, value in options.items() if value is not None}
    _check_utf8(body)

    async def work(service: "Service") -> tuple[Any, int]:
        answer = await service.search(body)
        waiting = 0 if as_json else (await service.page(status="pending", limit=1))["total"]
        return answer, waiting

    answer, waiting = target.read(work)
    if as_json:
        print_json(answer)
        return
    _show(answer)
    if waiting:
        remedy = "" if target.address else " `cragside worker --until-idle` indexes them."
        notices().print(f"Documents that wait to be indexed: {waiting}.{remedy}", soft_wrap=True)


def _check_utf8(body: Mapping[str, Any]) -> None:
    """Raise `ValidationError` for bytes of the command line that no service can be sent."""
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValidationError("The question or a condition is not UTF-8. Check the terminal's encoding.") from error


def one_of(argument: str | None, option: str | None, *, name: str, flag: str) -> str | None:
    """Return a value that was given as an argument or as a hidden option. Raises `ValidationError` for both."""
    if argument is not None and option is not None:
        raise ValidationError(f"{name} and {flag} mean the same. Give one of them.")
    return argument if option is None else option


def _conditions(repo: str | None, path: str | None, language: str | None) -> list[dict[str, Any]]:
    wanted = [("repoId", "value", repo), ("path", "prefix", path)]
    if language is not None:
        from cragside.composition.files import LANGUAGES  # imports what reads files

        # What is both, such as go, is the language: the files with that ending are among its code.
        named = language.strip().lower().removeprefix(".")
        wanted.append(("tier1.lang" if named in LANGUAGES else "lang", "value", named))
    return [{"key": key, "match": {how: value}} for key, how, value in wanted if value is not None]


def _show(answer: dict[str, Any]) -> None:
    console = output()
    if not answer["results"]:
        console.print("Nothing found.")
    if answer["best"] is not None:
        by = answer["by"]
        console.print(f"The best passage has a {by} of {answer['best']:.2f}. To see it, lower --min-{by}.")
    for found in answer["results"]:
        payload = found.get("payload", {})
        place = [f"p. {payload['pageNumber']}" if payload.get("pageNumber") else "", payload.get("section") or ""]
        where = ", ".join(part for part in place if part)
        heading = f"{_figures(found)}  {found['source']}{f' ({where})' if where else ''}"
        print_prose(console, heading, style="bold")
        print_prose(console, f"      {_preview(found['text'])}")
    for failed in answer["degraded"]:
        notices().print(printable(f"{failed['component']}: {failed['reason']}"), soft_wrap=True)
    graph = answer.get("graph")
    if graph and graph.get("entities"):
        names = ", ".join(entity["name"] for entity in graph["entities"])
        print_prose(console, f"\nEntities  {names}")


def _figures(found: dict[str, Any]) -> str:
    names = ("relevance", "similarity")
    return "  ".join(f"{name} {found[name]:.2f}" for name in names if found[name] is not None)


def _preview(text: str) -> str:
    line = " ".join(printable(text).split())
    return line if len(line) <= _PREVIEW else f"{line[:_PREVIEW].rsplit(' ', 1)[0]} …"


@local_or_service
def graph(
    target: Target,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The entity.")] = None,
    entity: Annotated[str | None, typer.Option(hidden=True)] = None,
    as_json: Annotated[bool, json_option("what GET /graph/entity/NAME answers")] = False,
) -> None:
    """Show an entity of the knowledge graph: what it is, what it is connected with, and which documents name it."""
    asked = one_of(name, entity, name="NAME", flag="--entity")
    if not asked or not asked.strip():
        raise ValidationError('Name an entity: cragside graph "Harbour Board"')
    answer = target.request(lambda client: client.find(f"/graph/entity/{quote(asked, safe='')}"))
    if answer is None:
        raise NotFound(f"The graph of this workspace has no entity {printable(asked)}.")
    print_result(answer, _show_entity, as_json=as_json)


def _show_entity(answer: dict[str, Any]) -> None:
    console = output()
    entity = answer["entity"]
    console.print(printable(f"{entity['name']} ({entity['type']})"), style="bold")
    print_prose(console, entity["description"])
    for connection in answer["connections"]:
        line = f"  {_ARROWS[connection['direction']]} {connection['entity']}: {connection['relationship']}"
        print_prose(console, line)
    for document in answer["documents"]:
        console.print(printable(f"  in {document['source']}"), soft_wrap=True)
