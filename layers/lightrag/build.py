"""Builds the Lambda layers from the lock, without Docker: installed for the target, pruned, stripped, byte-compiled.

    python -m layers.lightrag.build [--arch x86_64|arm64] [--python 3.11|3.12|3.13] [--out FOLDER] [--uv UV]
                                    [--sizes] [--canary]

Writes `OUT/{core,lightrag,drivers,parsers,traces}-PYTHON-ARCH/python/`, which Lambda mounts as `/opt/python`. Beside
each folder are a JSON file with the hash of its content, and its bill of materials in CycloneDX (`.cdx.json`).
`OUT/runtime-PYTHON-ARCH/python/` has the packages of Lambda's own runtime, for tests.
Equal lock, sources, recipe and interpreter give an equal hash. Existing layers are not built again.
"""

import argparse
import fcntl
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from layers.lightrag.bytecode import NO_BYTECODE, compiled, version_of
from layers.lightrag.errors import BuildError
from layers.lightrag.installing import add_data, install, requirements, run
from layers.lightrag.sizes import FUNCTIONS, LIMIT, MIB, sum_of, tables
from layers.lightrag.target import PLATFORMS, Target
from layers.lightrag.tree import CACHE, digest, normalise, prune, shake, size, strip
from tools import toolchain
from tools.bill import EXPORT, Unlisted, bill, held

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SOURCES = ROOT / "layers/core/python"
FUNCTION = ROOT / "functions/enrich"
PYTHONS = ("3.11", "3.12", "3.13")


@dataclass(frozen=True)
class Layer:
    """A built layer. `sha256` covers names and contents, `inputs` all that it was built from."""

    name: str
    sha256: str
    unzipped_bytes: int
    bytecode: bool
    inputs: str


def main() -> None:
    """Build the layers, and print the sizes."""
    arguments = _arguments()
    compiler = toolchain.interpreter(arguments.python)
    target = Target(arguments.arch, arguments.python, compiler)
    if arguments.python == "3.11":
        _say(
            "Lambda's python3.11 runs on Amazon Linux 2, whose glibc 2.26 is older than numpy's wheels need (2.27): "
            "these layers are for emulators on machines without a later Python."
        )
    if compiler is None:
        _say(NO_BYTECODE.format(python=arguments.python))
    try:
        with _alone(arguments.out):
            _build_all(target, arguments.out, arguments.uv, version_of(compiler) if compiler else "none")
    except BuildError as error:
        sys.exit(str(error))
    if arguments.sizes:
        print(tables(target, arguments.out, FUNCTION))
    if arguments.canary:
        _ask(target, arguments.out)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", choices=PLATFORMS, default="x86_64")
    parser.add_argument("--python", choices=PYTHONS, default="3.12")
    parser.add_argument("--out", type=Path, default=ROOT / "build/layers")
    parser.add_argument(
        "--uv", default=toolchain.uv() or "uv", help="default: $UV, the checkout's own, or the one on the PATH"
    )
    parser.add_argument("--sizes", action="store_true", help="print what takes how much, item by item")
    parser.add_argument("--canary", action="store_true", help="ask the layers a question, nothing else on the path")
    return parser.parse_args()


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Allow one build at a time in a folder. Others wait."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_all(target: Target, out: Path, uv: str, compiler_version: str) -> None:
    recipe = tomllib.loads((FOLDER / "layer.toml").read_text())
    everything = requirements(uv, ())
    added: dict[str, dict[str, str]] = recipe["added"]
    left_out = [*recipe["excluded"], *recipe["data"], *(name for wanted in added.values() for name in wanted)]
    if unknown := set(left_out) - set(everything):
        raise BuildError(f"layer.toml leaves out what the lock does not have: {', '.join(sorted(unknown))}.")
    layer = requirements(uv, left_out)
    data = {name: everything[name] for name in recipe["data"]}
    runtime = {name: everything[name] for name in recipe["runtime"]["distributions"]}
    common = f"{target.arch} {target.python} {compiler_version} {_recipe_hash()}"

    def installed(wanted: dict[str, str], folder: Path) -> None:
        install(uv, target, PLATFORMS[target.arch], wanted, folder)
        prune(folder, **recipe["pruned"])
        strip(folder)

    def third_party(folder: Path) -> None:
        add_data(uv, target, data, recipe["data"], folder)
        installed(layer, folder)

    def sources(folder: Path) -> None:
        shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns(CACHE), dirs_exist_ok=True)

    def of_the_runtime(folder: Path) -> None:
        install(uv, target, PLATFORMS[target.arch], runtime, folder)
        prune(folder, **recipe["pruned"])

    _build(target, out, "core", f"{common} {digest(SOURCES, caches=False)}", sources)
    _build(target, out, "lightrag", f"{common} {layer} {data}", third_party)
    for name, chosen in added.items():
        with_it = requirements(uv, [each for each in left_out if each not in chosen])
        extra = {each: lines for each, lines in with_it.items() if each not in {*layer, *runtime}}
        _build(target, out, name, f"{common} {extra}", partial(installed, extra))
    _build(target, out, "runtime", f"{common} {runtime}", of_the_runtime)
    _write_bills(target, out, run([uv, *EXPORT]))
    check(target, out)


def check(target: Target, out: Path) -> None:
    """Raise `BuildError` if the layers of a function are more than Lambda takes."""
    for name, layers in FUNCTIONS.items():
        if (total := sum_of(target, out, layers)) > LIMIT:
            raise BuildError(f"{name}: its layers have {total / MIB:.0f} MiB, more than Lambda's {LIMIT // MIB}.")


def _write_bills(target: Target, out: Path, exported: str) -> None:
    version = json.loads(exported)["metadata"]["component"]["version"]
    third_party = ("lightrag", "drivers", "parsers", "traces")
    contents = {layer: held(out / target.named(layer) / "python") for layer in third_party}
    contents["core"] = {"cragside": version}
    for layer, distributions in contents.items():
        name = target.named(layer)
        try:
            (out / f"{name}.cdx.json").write_text(bill(exported, name, distributions))
        except Unlisted as error:
            raise BuildError(str(error)) from error


def _recipe_hash() -> str:
    recipe = sorted([*FOLDER.glob("*.py"), FOLDER / "layer.toml"])
    return hashlib.sha256(b"".join(path.read_bytes() for path in recipe)).hexdigest()


def _build(target: Target, out: Path, layer: str, inputs: str, fill: Callable[[Path], None]) -> None:
    name = target.named(layer)
    inputs = hashlib.sha256(inputs.encode()).hexdigest()
    folder, record = out / name, out / f"{name}.json"
    if record.exists() and folder.exists():
        known = json.loads(record.read_text())
        if known["inputs"] == inputs and known["sha256"] == digest(folder):
            _say(f"{name}: {known['sha256'][:16]}, as it was")
            return
    _say(f"{name}: building")
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=out) as scratch:
        contents = Path(scratch, name)
        fill(contents / "python")
        shake(contents)
        if target.compiler:
            for failure in compiled(contents / "python", target.compiler):
                _say(f"  no bytecode: {failure}")
        normalise(contents)
        built = Layer(name, digest(contents), size(contents), target.compiler is not None, inputs)
        shutil.rmtree(folder, ignore_errors=True)
        contents.rename(folder)
    record.write_text(json.dumps(asdict(built), indent=2) + "\n")
    _say(f"{name}: {built.sha256[:16]}, {built.unzipped_bytes / MIB:.1f} MiB")


def _ask(target: Target, out: Path) -> None:
    """Run the canary on the layers of each kind of function."""
    if target.compiler is None or (sys.platform, _machine()) != ("linux", target.arch):
        _say(f"No canary: this machine cannot run Python {target.python} for Linux on {target.arch}.")
        return
    for name, layers in FUNCTIONS.items():
        folders = [FUNCTION, *(out / target.named(layer) / "python" for layer in (*layers, "runtime"))]
        having = [part for layer in layers if layer in ("drivers", "parsers", "traces") for part in ("--with", layer)]
        command = [target.compiler, "-I", "-S", "-B", str(ROOT / "layers/canary.py"), *map(str, folders), *having]
        done = subprocess.run(  # noqa: S603 - an interpreter that was found, with arguments of this file
            command, env={}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"The canary of {name} failed.\n{done.stderr[-4000:]}")
        print(f"{name}: {done.stdout}", end="")


def _machine() -> str:
    machine = platform.machine()
    return "arm64" if machine == "aarch64" else machine


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
