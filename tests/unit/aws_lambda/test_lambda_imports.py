import os
import subprocess
import sys
from pathlib import Path

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
    "aws_xray_sdk",
    "typer",
    "rich",
    "uvicorn",
)
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


def test_init_and_a_health_check_import_nothing_heavy(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(ROOT / "layers/core/python")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "OLLAMA", "SEARXNG"))}
    environment = {**kept, "PYTHONPATH": paths, "RAG_HOME": str(tmp_path), "RAG_API_TOKEN": "right"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_the_handler_has_at_most_twenty_lines() -> None:
    assert len((ROOT / "functions/enrich/handler.py").read_text().splitlines()) <= 20
