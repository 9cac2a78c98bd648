"""Compares the pages with the code that they describe: python -m tools.docs. Prints each difference, one a line."""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import cragside
from cragside import Cragside
from cragside.crag.graph import build_graph
from cragside.domain import errors
from cragside.entrypoints.cli.reference import reference as command_line
from cragside.entrypoints.proxy.errors import status_of
from tests.described import openapi
from tests.faults.matrix import CELLS, FAULTS, table
from tests.hosts import catalogue, open_webui, smart_proxy
from tests.services import ollama
from tools.configuration_reference import reference as configuration
from tools.host_table import rows_on_page

ROOT = Path(__file__).parents[1]


def read(page: str) -> str:
    """A page's text."""
    return (ROOT / page).read_text()


def compared(page: str, shown: Iterable[str], there: Iterable[str]) -> Iterator[str]:
    """Return the entries that a page lacks, and those that it has too much."""
    shown, there = set(shown), set(there)
    yield from (f"{page} lacks {one}" for one in sorted(there - shown))
    yield from (f"{page} has {one}, which is not there" for one in sorted(shown - there))


def generated() -> Iterator[str]:
    """Pages and parts of pages that a program writes."""
    if read("docs/configuration.md") != configuration():
        yield "docs/configuration.md is not what `python -m tools.configuration_reference` prints"
    if read("docs/cli.md") != command_line():
        yield "docs/cli.md is not what `python -m cragside.entrypoints.cli.reference` prints"
    if build_graph().get_graph().draw_mermaid() not in read("docs/architecture.md"):
        yield "docs/architecture.md has another graph than cragside.crag.graph"


def api() -> Iterator[str]:
    """The routes and errors of the API."""
    page = "docs/api.md"
    text = read(page)
    named = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^` ]*)`", text))
    there = {f"{method.upper()} {path}" for path, methods in openapi()["paths"].items() for method in methods}
    there.add("GET /openapi.json")  # stands in no document of its own
    yield from compared(page, *({re.sub(r"\{\w+\}", "{}", route) for route in routes} for routes in (named, there)))
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CragsideError)
    ]
    codes = {kind.code for kind in kinds} | {"forbidden", "bad_gateway", "loop_detected"}
    headings = re.findall(r"^### (`\w+` \(\d+\))$", text, re.MULTILINE)
    yield from compared(page, headings, {f"`{code}` ({status_of(code)})" for code in codes})


def python() -> Iterator[str]:
    """The public names and methods."""
    page = "docs/python.md"
    text = read(page)
    yield from compared(page, re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE), cragside.__all__)
    methods = re.findall(r"^\| `await (\w+)\(", text, re.MULTILINE)
    yield from compared(page, methods, {name for name in vars(Cragside) if not name.startswith("_")})


def failures() -> Iterator[str]:
    """The faults that the tests cause, and what they find."""
    page = "docs/failures.md"
    text = read(page)
    tables = re.findall(r"^### (.+)\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    shown = {f"{component}: {row}" for component, rows in tables for row in rows.splitlines()}
    yield from compared(page, shown, {f"{each}: {row}" for each in CELLS for row in table(each).splitlines()})
    yield from compared(page, re.findall(r"^- \*\*(\w+)\*\*: ", text, re.MULTILINE), FAULTS)


def hosts() -> Iterator[str]:
    """The hosts that the tests ask with, in their versions."""
    tried = [(host.name, host.version) for host in (*catalogue.LIBRARIES, catalogue.LITELLM_PROXY)]
    tried += [(catalogue.COMMAND_LINE, ollama.VERSION), (catalogue.SMART_PROXY.name, smart_proxy.REVISION)]
    tried += [(catalogue.OPEN_WEBUI, open_webui.VERSION)]
    shown = {f"{name} {version}" for name, version, *_ in rows_on_page()}
    yield from compared("README.md", shown, {f"{name} {version}" for name, version in tried})


def figures() -> Iterator[str]:
    """Figures of the README that are those of the benchmarks and evals."""
    given = ""
    for name, result, command in rows("README.md", "How well, how fast"):
        given = command or given
        page, measured = measured_by(given)
        for figure in sorted(numbers(result) - numbers(measured)):
            yield f"README.md has {figure} for {name}, and {page} has not"


def numbers(text: str) -> set[str]:
    """The numbers in a text."""
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def measured_by(command: str) -> tuple[str, str]:
    """The page that has a command's figures, and what it says of them."""
    if "eval" in command:
        script = "clapnq" if "CLAPNQ_DIR" in command else "peers"
        return "evals/README.md", section("evals/README.md", f"Figures of `{script}.py`")
    said, name = "", ""
    for given, *cells in rows("benchmarks/README.md", "Figures"):
        name = given.partition("`")[0] or name  # a row without a command belongs to the one above
        said += " ".join(cells) + "\n" if name == command.split()[-1] else ""
    return "benchmarks/README.md", said


def section(page: str, heading: str) -> str:
    """A page's text below a heading."""
    return read(page).split(f"## {heading}\n")[1].split("\n## ")[0]


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in section(page, heading).splitlines() if line.startswith("| ")]
    return [[cell.strip("`") for cell in re.split(r" *\| *", line)[1:-1]] for line in lines[1:]]


def index() -> Iterator[str]:
    """The index of all pages."""
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - {"README.md"}
    linked = re.findall(r"\]\(([^)]*)\)", read("docs/README.md"))
    yield from compared("docs/README.md", linked, pages | {"../benchmarks/README.md", "../evals/README.md"})


def main() -> int:
    """Print the differences. Return 1 if there is one."""
    checks = (generated, api, python, failures, hosts, figures, index)
    differences = [difference for check in checks for difference in check()]
    print("\n".join(differences) if differences else "The pages say what the code does.")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
