"""`cragside query`: finds passages for a question."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.composition.files import LANGUAGES
from cragside.domain.errors import ValidationError
from cragside.domain.query import Ranking
from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, ask, given_once
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, output, print_json, printable
from cragside.entrypoints.cli.wrapping import print_prose

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service

_PREVIEW = 300

RankedBy = Annotated[
    Ranking,
    typer.Option(help="What ranks the passages: relevance as for /rag, or similarity, which grades nothing."),
]
LeastRelevance = Annotated[
    float | None, typer.Option("--min-relevance", min=0, max=1, help="Least relevance of a passage.")
]
LeastSimilarity = Annotated[
    float | None,
    typer.Option(
        "--min-similarity",
        min=0,
        max=1,
        help="Least similarity of a passage. Default with --by similarity: RAG_SIMILARITY_THRESHOLD.",
    ),
]
RetrievalMode = Annotated[
    str | None,
    typer.Option(help="LightRAG's way to retrieve: local, global, hybrid, naive or mix. Default: mix."),
]
OfRepository = Annotated[str | None, typer.Option("--repo-id", "--repoId", help="Passages of this repository only.")]
PathPrefix = Annotated[
    str | None, typer.Option("--path-prefix", "--pathPrefix", help="Passages of paths that begin so.")
]
InLanguage = Annotated[
    str | None,
    typer.Option("--lang", help="Code in this language (python), or a repository's files with this ending (py)."),
]
WithGraph = Annotated[
    bool, typer.Option("--graph", "--graph-expand", help="Show the entities around what was found, too.")
]


def query(
    context: typer.Context,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The question.")] = None,
    question: Annotated[str | None, typer.Option("--q", metavar="TEXT", help="The question, as an option.")] = None,
    top_k: Annotated[int, typer.Option("--top-k", "--topK", min=1, max=100, help="Most passages.")] = 8,
    by: RankedBy = "relevance",
    least_relevance: LeastRelevance = None,
    least_similarity: LeastSimilarity = None,
    mode: RetrievalMode = None,
    repo: OfRepository = None,
    path: PathPrefix = None,
    language: InLanguage = None,
    graph: WithGraph = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what POST /v1/query answers, and nothing else.")
    ] = False,
    workspace: WorkspaceName = None,
    api: Address = None,
    token: Token = None,
) -> None:
    """Find the passages that are most relevant to a question, without a web search.

    Relevance is the probability that a passage is about the question. Similarity is the cosine of their vectors. For
    what a prompt would get, see `cragside enrich`.
    """
    session = session_of(context)
    settings = session.settings(workspace)
    asked = given_once(text, question, name="TEXT", flag="--q")
    if not asked or not asked.strip():
        raise ValidationError('Say what to look for: cragside query "who lit the lamp?"')
    conditions = _conditions(repo, path, language)
    options = {
        "mode": mode,
        "min_relevance": least_relevance,
        "min_similarity": least_similarity,
        "filter": {"must": conditions} if conditions else None,
    }
    body: dict[str, Any] = {"query": asked, "by": by, "limit": top_k, "graph": graph}
    body |= {name: value for name, value in options.items() if value is not None}

    async def work(service: "Service") -> tuple[Any, int]:
        answer = await service.client.post("/v1/query", body)
        waiting = 0 if as_json else (await service.client.get("/v1/documents", status="pending", limit=1))["total"]
        return answer, waiting

    answer, waiting = ask(session, settings, work, address=api, token=token)
    if as_json:
        print_json(answer)
        return
    _show(answer)
    if waiting:
        remedy = "" if api else " `cragside worker --until-idle` indexes them."
        notices().print(f"Documents that wait to be indexed: {waiting}.{remedy}", soft_wrap=True)


def _conditions(repo: str | None, path: str | None, language: str | None) -> list[dict[str, Any]]:
    wanted = [("repoId", "value", repo), ("path", "prefix", path)]
    if language is not None:
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
