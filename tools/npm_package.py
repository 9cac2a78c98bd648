"""Builds the npm package: the client that is generated from the OpenAPI document, and the middleware for the AI SDK.

python -m tools.npm_package FOLDER        # then: npm publish FOLDER
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.settings import load_settings
from tests.hosts import packages
from tests.services import generators, npm, tools

SOURCE = Path(__file__).parents[1] / "packaging/npm"


def build(folder: Path) -> Path:
    """Build the package in a folder, and return it. Raises `Unavailable`, also for what does not fit the types."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        shutil.copytree(SOURCE / "src", work / "src")
        (work / "openapi.json").write_text(json.dumps(create_app(_container(work)).openapi()))
        # The types of the AI SDK are those of the tests.
        (work / "node_modules").symlink_to(packages.node_modules())
        generators.typescript_module(work / "openapi.json", work / "src/client")
        options = [
            "--strict",
            "--skipLibCheck",
            "--declaration",
            "--target",
            "es2022",
            "--lib",
            "es2023,dom,dom.iterable",
        ]
        files = [str(work / "src" / name) for name in ("index.ts", "ai_sdk.ts")]
        compiler = [str(npm.NODE), str(generators.typescript_compiler()), *options]
        tools.run([*compiler, "--module", "commonjs", "--outDir", str(folder / "dist"), *files], cwd=work)
    shutil.copy(SOURCE / "package.json", folder)
    shutil.copy(SOURCE / "README.md", folder)
    return folder


def _container(home: Path) -> Container:
    return Container(load_settings({"RAG_HOME": str(home / "store")}))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
