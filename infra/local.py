"""Writes what `sam local start-api` needs: python -m infra.local build/cdk/dev --out build/sam/dev.

The functions, layers and settings are those of the synthesised templates. In place of AWS' secrets and servers stands a
local context: a token, and the databases of `make up`, whose passwords are in .env.
"""

import argparse
import json
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

# The compose file's network of databases, which has no way out.
NETWORK = "cragside_stores"
_TAKEN = ("Handler", "Runtime", "Architectures", "MemorySize", "Timeout")
# The network of databases leads to neither; without their addresses, cragside's embedded models do the work.
_OUT_OF_REACH = ("OLLAMA_BASE_URL", "SEARXNG_HOST")
Resources = Mapping[str, Mapping[str, Any]]
# What SAM's template says of a variable whose value is in the file beside it.
_ELSEWHERE = ""


class LocalContext:
    """The settings that stand for those that only AWS can give, as .env says them."""

    def __init__(self, values: Mapping[str, str | None]) -> None:
        postgres, neo4j = (values.get(f"CRAGSIDE_{name}_PASSWORD") for name in ("POSTGRES", "NEO4J"))
        self.token = values.get("CRAGSIDE_API_TOKEN") or secrets.token_urlsafe(32)
        self._replacing = {"RAG_API_TOKEN_SECRET": {"RAG_API_TOKEN": self.token}}
        if postgres:
            uri = f"postgresql://cragside:{postgres}@postgres:5432/cragside"
            self._replacing["POSTGRES_URI_SECRET"] = {"POSTGRES_URI": uri}
        if neo4j:
            self._replacing["NEO4J_PASSWORD_SECRET"] = {"NEO4J_PASSWORD": neo4j, "NEO4J_URI": "neo4j://neo4j:7687"}

    def replacing(self, name: str) -> dict[str, str]:
        """Return the settings that stand for one; empty if there are none."""
        return self._replacing.get(name, {})


class MissingServer(Exception):
    """A function needs a database, and .env has no password of it."""


def template(resources: Resources, folders: Mapping[str, Path], context: LocalContext) -> dict[str, Any]:
    """SAM's template of the function that answers requests. Raises `MissingServer`."""
    function = answering(resources)
    layers = [layer["Ref"] for layer in function["Layers"]]
    enrich = {
        **{key: function[key] for key in _TAKEN if key in function},
        "CodeUri": _folder(function["Code"], folders),
        "Layers": [{"Ref": layer} for layer in layers],
        "Environment": {"Variables": dict.fromkeys(settings(function, context), _ELSEWHERE)},
        "Events": {"Everything": {"Type": "HttpApi"}},
    }
    found = {layer: {"ContentUri": _folder(resources[layer]["Properties"]["Content"], folders)} for layer in layers}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::Serverless-2016-10-31",
        "Resources": {
            "Enrich": {"Type": "AWS::Serverless::Function", "Properties": enrich},
            **{name: {"Type": "AWS::Serverless::LayerVersion", "Properties": said} for name, said in found.items()},
        },
    }


def answering(resources: Resources) -> dict[str, Any]:
    """Return the properties of the one function of the service."""
    (function,) = [found["Properties"] for found in resources.values() if found["Type"] == "AWS::Lambda::Function"]
    return dict(function)


def settings(function: Mapping[str, Any], context: LocalContext) -> dict[str, str]:
    """The function's settings on this machine. Raises `MissingServer`."""
    given = function["Environment"]["Variables"]
    # What stands for a secret replaces the server's address too.
    replaced = {key: value for name in given for key, value in context.replacing(name).items()}
    return {**dict(_plain(given, context)), **replaced}


def _plain(given: Mapping[str, Any], context: LocalContext) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if name.endswith("_SECRET"):
            if name in ("POSTGRES_URI_SECRET", "NEO4J_PASSWORD_SECRET") and not context.replacing(name):
                raise MissingServer(f"{name}: .env says no password. `make up` needs it too: see .env.example.")
        elif isinstance(value, str) and name not in _OUT_OF_REACH:
            yield name, value  # what is no text refers to a bucket or a queue, which nobody has here


def _folder(code: Mapping[str, Any], folders: Mapping[str, Path]) -> str:
    return str(folders[str(code["S3Key"]).removesuffix(".zip")])


def service_resources(assembly: Path) -> Resources:
    """Return the resources of the service's stack. Raises `FileNotFoundError` if the folder holds none."""
    manifest = json.loads((assembly / "manifest.json").read_text())
    (name,) = [name for name in manifest["artifacts"] if name.endswith("-service")]
    return dict(json.loads((assembly / f"{name}.template.json").read_text())["Resources"])


def asset_folders(assembly: Path) -> dict[str, Path]:
    """The folder of each asset, by its hash."""
    files = [json.loads(file.read_text())["files"] for file in assembly.glob("*.assets.json")]
    return {
        key: (assembly / asset["source"]["path"]).resolve()
        for found in files
        for key, asset in found.items()
        if asset["source"]["packaging"] == "zip"
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write template.json, settings.json for this user alone, and `arguments`. Return 2 if something is missing."""
    parser = argparse.ArgumentParser(prog="python -m infra.local", description="What `sam local start-api` needs.")
    parser.add_argument("assembly", type=Path, help="folder of the templates, which `make synth` writes")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--env-file", type=Path, default=Path(".env"), help="passwords of the servers; default .env")
    given = parser.parse_args(arguments)
    context = LocalContext(dotenv_values(given.env_file))
    try:
        resources = service_resources(given.assembly)
        written = template(resources, asset_folders(given.assembly), context)
    except (FileNotFoundError, MissingServer) as error:
        print(error, file=sys.stderr)
        return 2
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "template.json").write_text(json.dumps(written, indent=1))
    variables = settings(answering(resources), context)
    secret = given.out / "settings.json"
    secret.unlink(missing_ok=True)
    secret.touch(mode=0o600)
    secret.write_text(json.dumps({"Enrich": variables}))
    network = ["--docker-network", NETWORK] if "POSTGRES_URI" in variables else []
    (given.out / "arguments").write_text(
        " ".join(["--template", "template.json", "--env-vars", "settings.json", *network])
    )
    print(f"The token is RAG_API_TOKEN in {secret}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
