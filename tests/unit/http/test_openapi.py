"""The OpenAPI document is valid, complete and true."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.settings import load_settings
from tests.described import openapi

JSON = "application/json"
TEXT = "The keeper of the harbour lights the lamp at dusk."


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    made: dict[str, Any] = openapi()
    return made


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema of an object below `value`."""
    if isinstance(value, dict):
        if "properties" in value:
            yield value
        for each in value.values():
            yield from schemas(each)
    elif isinstance(value, list):
        for each in value:
            yield from schemas(each)


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    assert [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_operation_ids_are_short_and_unique(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    assert [each for each in ids if not re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", each)] == []


def test_every_operation_has_a_description_errors_and_a_schema_of_its_answer(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        assert operation["description"], name
        answers = operation["responses"]
        assert name == "GET /healthz" or any(code[0] in "45" for code in answers), name
        for code, answer in answers.items():
            if code[0] == "2" and code != "204":
                assert all(content["schema"] for content in answer["content"].values()), name


def test_every_field_is_described(document: dict[str, Any]) -> None:
    # The schema of a reference may have the description.
    missing = [
        (schema.get("title"), name)
        for schema in schemas(document)
        for name, field in schema["properties"].items()
        if not field.get("description") and "$ref" not in field
    ]
    assert missing == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/enrich",
        "/v1/citations",
        "/v1/query",
        "/v1/documents",
        "/v1/memories",
        "/v1/memories/search",
        "/query",
        "/ingest",
    ],
)
def test_bodies_have_examples_that_fit(document: dict[str, Any], path: str) -> None:
    schema = document["paths"][path]["post"]["requestBody"]["content"][JSON]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    (example,) = schema["examples"]
    whole = {**schema, "components": document["components"]}
    assert [error.message for error in Draft202012Validator(whole).iter_errors(example)] == []


async def test_answers_fit_their_schemas(document: dict[str, Any], tmp_path: Path) -> None:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    transport = httpx.ASGITransport(create_app(container))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def ask(method: str, path: str, body: Any = None, *, template: str = "") -> Any:
            answer = await client.request(method, path, json=body)
            operation = document["paths"][template or path][method.lower()]
            schema = operation["responses"][str(answer.status_code)]["content"][JSON]["schema"]
            whole = {**schema, "components": document["components"]}
            assert [error.message for error in Draft202012Validator(whole).iter_errors(answer.json())] == [], path
            return answer.json()

        accepted = await ask("POST", "/v1/documents", {"name": "harbour.md", "text": TEXT})
        await container.worker().run(until_idle=True)
        found = await ask("POST", "/v1/enrich", {"prompt": "/rag Who lights the lamp of the harbour?"})
        assert found["metadata"]["rag_context"]["documents"]
        await ask("POST", "/v1/enrich", {"prompt": "Hello", "extra": [1]})
        await ask("POST", "/v1/enrich", {"prompt": "/rag Who?", "persona": "nobody"})
        await ask("GET", "/v1/documents")
        document_id = accepted["documents"][0]["id"]
        await ask("GET", f"/v1/documents/{document_id}", template="/v1/documents/{document_id}")
        await ask("GET", "/health")
        await ask("GET", "/v1/workspaces")
        await ask("GET", "/v1/components")
        await ask("GET", "/v1/samples")
        await ask("POST", "/v1/samples", {"workspace": "trial"})
        await ask("GET", "/v1/settings")
        await ask("GET", "/v1/queue/dead")
        await ask("POST", "/query", {"query": "Who lights the lamp?", "graphExpand": True})
        await ask("POST", "/v1/query", {"query": "Who lights the lamp?", "graph": True})
        await ask("POST", "/v1/query", {"query": "Who lights the lamp?", "by": "similarity", "min_similarity": 1})
        await ask("POST", "/query/data", {"query": "Who lights the lamp?"})
    await container.close()
