import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
HEAVY = (
    "lightrag",
    "langgraph",
    "langsmith",
    "langchain_core",
    "langchain_ollama",
    "langchain_text_splitters",
    "numpy",
    "wordllama",
    "tokenizers",
    "safetensors",
    "aiohttp",
    "httpx",
    "boto3",
    "typer",
    "rich",
    "uvicorn",
)
FOR_DOCUMENTS = ("lxml", "trafilatura", "pypdfium2", "gcld3", "pathspec", "aiohttp")
_SCRIPT = f"""
import json, sys
sys.path[:0] = ["functions/enrich", "tests/unit/aws_lambda"]
from handler import handler
loaded = {{name.partition(".")[0] for name in sys.modules}}
event = json.load(open("tests/unit/aws_lambda/events/http_api.json"))
event["requestContext"]["http"] |= {{"method": "GET", "path": "/healthz"}}
class Context:
    function_name = function_version = memory_limit_in_mb = invoked_function_arn = aws_request_id = "1"
    def get_remaining_time_in_millis(self):
        return 1000
answer = handler(event, Context())
assert answer["body"] == '{{"ok":true}}', answer
loaded |= {{name.partition(".")[0] for name in sys.modules}}
print("heavy:", sorted(loaded & set({HEAVY!r})))
"""
_SELDOM = """
import gc, sys
sys.path[:0] = ["functions/enrich"]
import handler
print(gc.isenabled(), gc.get_threshold()[0])
"""


def test_init_and_a_health_check_import_nothing_heavy(tmp_path: Path) -> None:
    assert run(_SCRIPT, tmp_path)[-1] == "heavy: []"


def test_garbage_is_looked_for_seldom(tmp_path: Path) -> None:
    assert run(_SELDOM, tmp_path) == ["True 50000"]


_INDEXING = """
import asyncio, sys
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import load_settings

async def index():
    container = Container(load_settings())
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents([SourceText("otter.md", "Otters hold hands while they sleep.")])
    await container.close()

asyncio.run(index())
"""
_ASKING = f"""
import json, sys
sys.path[:0] = ["functions/enrich"]
from handler import handler
event = json.load(open("tests/unit/aws_lambda/events/http_api.json"))
event["headers"]["authorization"] = "Bearer right"
event["body"] = json.dumps({{"prompt": "/rag Do otters hold hands?"}})
class Context:
    function_name = function_version = memory_limit_in_mb = invoked_function_arn = aws_request_id = "1"
    def get_remaining_time_in_millis(self):
        return 60_000
answer = handler(event, Context())
assert answer["statusCode"] == 200 and "otter.md" in answer["body"], answer
print("not for questions:", sorted({{name.partition(".")[0] for name in sys.modules}} & set({FOR_DOCUMENTS!r})))
"""


def test_a_question_imports_nothing_that_reads_describes_or_fetches_documents(tmp_path: Path) -> None:
    assert run(_INDEXING, tmp_path) == []
    assert run(_ASKING, tmp_path)[-1] == "not for questions: []"


_ROUTES = """
import json, sys
from pathlib import Path
sys.path[:0] = ["functions/enrich"]
from handler import handler
def routes():
    below = ("cragside.entrypoints.http.v1.", "cragside.entrypoints.http.peers.")
    return sorted(name.rpartition(".")[2] for name in sys.modules if name.startswith(below))
print(routes())
event = json.load(open("tests/unit/aws_lambda/events/http_api.json"))
event["headers"]["authorization"] = "Bearer right"
class Context:
    function_name = function_version = memory_limit_in_mb = invoked_function_arn = aws_request_id = "1"
    def get_remaining_time_in_millis(self):
        return 60_000
event["body"] = json.dumps({"prompt": "Do otters hold hands?"})
assert handler(event, Context())["statusCode"] == 200
print(routes())
event["requestContext"]["http"] |= {"method": "GET", "path": "/nowhere"}
assert handler(event, Context())["statusCode"] == 404
print(routes())
event["requestContext"]["http"] |= {"path": "/openapi.json"}
assert "/query/data" in handler(event, Context())["body"]
folders = Path("layers/core/python/cragside/entrypoints/http")
print(set(routes()) == {path.stem for part in ("v1", "peers") for path in (folders / part).glob("[a-z]*.py")})
"""


def test_a_request_imports_the_routes_of_its_path_alone_and_the_openapi_document_all(tmp_path: Path) -> None:
    printed = [line for line in run(_ROUTES, tmp_path) if not line.startswith("{")]
    assert printed == ["[]", "['enrich']", "['enrich']", "True"]


def run(script: str, home: Path) -> list[str]:
    """The lines that a script prints in a fresh interpreter with the function's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "OLLAMA", "SEARXNG"))}
    paths = str(ROOT / "layers/core/python")
    environment = {**kept, "PYTHONPATH": paths, "RAG_HOME": str(home), "RAG_API_TOKEN": "right"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


_GRAPH = """
import sys
import cragside.crag.graph
print(sorted({"langgraph_sdk.client", "langsmith.types.run", "aiohttp", "httpx2"} & set(sys.modules)))
from langgraph_sdk import get_client
from langsmith.types import RunSelectField
print(callable(get_client), "langsmith.types.run" in sys.modules, hasattr(sys.modules["langgraph_sdk"], "unknown"))
"""


def test_the_graph_loads_no_client_of_other_servers_and_leaves_them_to_others(tmp_path: Path) -> None:
    assert run(_GRAPH, tmp_path)[-2:] == ["[]", "True True False"]
