"""Real repositories, made by git, and a server for them on loopback."""

import os
import subprocess
import threading
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@a.example",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@a.example",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Repository:
    """A repository with a work tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, **keywords) -> bytes:
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        return subprocess.run(
            command, cwd=self.folder, check=True, capture_output=True, env=os.environ | IDENTITY, **keywords
        ).stdout

    def write(self, **files: bytes | str) -> None:
        self.write_all(files)

    def write_all(self, files: dict[str, bytes | str]) -> None:
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.commit()

    def commit(self) -> None:
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Work")

    def commit_tree(self, entries: bytes) -> None:
        """A commit of a tree that no work tree could make; `entries` is a tree object."""
        tree = self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", input=entries).strip().decode()
        commit = self.git("commit-tree", tree, "-m", "Forged").strip().decode()
        self.git("update-ref", "refs/heads/main", commit)


def unfold(repository: Repository, innermost: str, name: str, deep: int) -> None:
    """Commit `name` with trees below it that each hold the next one ten times."""
    kind, entry = innermost.split()
    mode = "100644" if kind == "blob" else "040000"
    for _ in range(deep):
        listed = "".join(f"{mode} {kind} {entry}\t{number}.md\n" for number in range(10))
        entry = repository.git("mktree", input=listed.encode()).decode().strip()
        mode, kind = "040000", "tree"
    tree = repository.git("mktree", input=f"040000 tree {entry}\t{name}\n".encode()).decode().strip()
    commit = repository.git("commit-tree", tree, "-m", "Unfolds").decode().strip()
    repository.git("update-ref", "refs/heads/main", commit)


async def drained(items: AsyncIterator[object]) -> list[object]:
    return [item async for item in items]


class GitServer:
    """Serves the repositories below a folder with git's own CGI, or whatever `answer` says instead."""

    def __init__(self, root: Path) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.redirect: str | None = None
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                if server.redirect:
                    self.send_response(301)
                    self.send_header("Location", server.redirect + self.path)
                    self.end_headers()
                    return
                path, _, query = self.path.partition("?")
                length = int(self.headers.get("Content-Length") or 0)
                environment = os.environ | IDENTITY | {
                    "GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "CONTENT_LENGTH": str(length), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "REMOTE_ADDR": "127.0.0.1",
                }  # fmt: skip
                answer = subprocess.run(
                    ["git", "http-backend"], input=self.rfile.read(length), env=environment, capture_output=True
                ).stdout
                head, _, body = answer.partition(b"\r\n\r\n")
                lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
                self.send_response(int(lines.pop("Status", "200").split()[0]))
                for name, value in lines.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - the name that the base class calls

            def log_message(self, *_arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "work" / "project")


@pytest.fixture
def server(repository):
    server = GitServer(repository.folder.parent)
    yield server
    server.stop()
