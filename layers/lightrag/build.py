"""Builds the Lambda layers from the lock, without Docker: installed for the target, pruned, stripped, byte-compiled.

    python -m layers.lightrag.build [--arch x86_64|arm64] [--python 3.11|3.12|3.13] [--out FOLDER] [--uv UV]
                                    [--sizes] [--canary]

Writes `OUT/{core,lightrag}-PYTHON-ARCH/python/`, which Lambda mounts as `/opt/python`. Beside each folder are a JSON
file with the hash of its content, and its bill of materials in CycloneDX (`.cdx.json`).
`OUT/runtime-PYTHON-ARCH/python/` has the packages of Lambda's own runtime, for tests.
Equal lock, sources, recipe and interpreter give an equal hash. Existing layers are not built again.
"""

import argparse
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from layers.lightrag.bytecode import NO_BYTECODE, compiled, version_of
from layers.lightrag.errors import BuildError
from layers.lightrag.tree import CACHE, digest, files, normalise, prune, shake, size, strip
from tools import toolchain
from tools.bill import EXPORT, Unlisted, bill, held

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SOURCES = ROOT / "layers/core/python"
FUNCTION = ROOT / "functions/enrich"
# Lambda's names and uv's. Amazon Linux 2023, which Python 3.12 and later use, has glibc 2.34.
PLATFORMS = {"x86_64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_28"}
PYTHONS = ("3.11", "3.12", "3.13")
MIB = 2**20
BUDGET = 150 * MIB
LIMIT = 250 * MIB
ROWS = 24


@dataclass(frozen=True)
class Target:
    """The target of a build. `compiler` is an interpreter of its version, or None."""

    arch: str
    python: str
    compiler: str | None

    def named(self, layer: str) -> str:
        """The name of a layer's folder."""
        return f"{layer}-{self.python}-{self.arch}"


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
        print(_sizes(target, arguments.out))
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
    everything = _requirements(uv, ())
    if unknown := set(recipe["excluded"]) - set(everything):
        raise BuildError(f"layer.toml leaves out what the lock does not have: {', '.join(sorted(unknown))}.")
    layer = _requirements(uv, [*recipe["excluded"], *recipe["data"]])
    data = {name: everything[name] for name in recipe["data"]}
    runtime = {name: everything[name] for name in recipe["runtime"]["distributions"]}
    common = f"{target.arch} {target.python} {compiler_version} {_recipe_hash()}"

    def third_party(folder: Path) -> None:
        _install(uv, target, PLATFORMS[target.arch], layer, folder)
        _add_data(uv, target, data, recipe["data"], folder)
        prune(folder, **recipe["pruned"])
        strip(folder)

    def sources(folder: Path) -> None:
        shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns(CACHE), dirs_exist_ok=True)

    def of_the_runtime(folder: Path) -> None:
        _install(uv, target, PLATFORMS[target.arch], runtime, folder)
        prune(folder, **recipe["pruned"])

    _build(target, out, "core", f"{common} {digest(SOURCES, caches=False)}", sources)
    _build(target, out, "lightrag", f"{common} {layer} {data}", third_party)
    _build(target, out, "runtime", f"{common} {runtime}", of_the_runtime)
    _write_bills(target, out, _run([uv, *EXPORT]))


def _write_bills(target: Target, out: Path, exported: str) -> None:
    version = json.loads(exported)["metadata"]["component"]["version"]
    contents = {"core": {"cragside": version}, "lightrag": held(out / target.named("lightrag") / "python")}
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


def _requirements(uv: str, pruned: Sequence[str]) -> dict[str, str]:
    """The lock's distributions with versions, markers and hashes, without pruned ones and their own dependencies."""
    command = [uv, "export", "--frozen", "--no-dev", "--no-emit-project", "--extra", "aws", "--no-header"]
    pruning = [part for name in pruned for part in ("--prune", name)]
    requirements: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", _run([*command, "--no-annotate", *pruning])):
        name = re.match(r"[\w.-]+", block)
        if name:
            requirements[name[0]] = requirements.get(name[0], "") + block.strip() + "\n"
    return requirements


def _install(uv: str, target: Target, platform: str, requirements: dict[str, str], folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        listed = Path(scratch, "requirements.txt")
        listed.write_text("".join(requirements.values()))
        options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--link-mode", "copy"]
        options += ["--python-platform", platform, "--python-version", target.python]
        _run([uv, "pip", "install", *options, "--target", str(folder), "--requirements", str(listed)])


def _add_data(
    uv: str, target: Target, requirements: dict[str, str], wanted: dict[str, list[str]], folder: Path
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        # x86_64 has wheels of everything.
        _install(uv, target, PLATFORMS["x86_64"], requirements, Path(scratch))
        for name, paths in wanted.items():
            for path in paths:
                (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(scratch, name, path), folder / name / path)
        for metadata in Path(scratch).glob("*.dist-info"):
            shutil.copytree(metadata, folder / metadata.name)


def _run(command: Sequence[str]) -> str:
    environment = {**os.environ, "UV_PYTHON": sys.executable}
    try:
        done = subprocess.run(  # noqa: S603 - uv, with arguments of this file
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise BuildError("uv was not found. Name it with --uv, or run `make layers`, which installs it.") from error
    if done.returncode:
        raise BuildError(f"{' '.join(command[:3])} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _ask(target: Target, out: Path) -> None:
    if target.compiler is None or (sys.platform, _machine()) != ("linux", target.arch):
        _say(f"No canary: this machine cannot run Python {target.python} for Linux on {target.arch}.")
        return
    folders = [FUNCTION, *(out / target.named(layer) / "python" for layer in ("core", "lightrag", "runtime"))]
    command = [target.compiler, "-I", "-S", "-B", str(ROOT / "layers/canary.py"), *map(str, folders)]
    done = subprocess.run(  # noqa: S603 - an interpreter that was found, with arguments of this file
        command, env={}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"The canary failed.\n{done.stderr[-4000:]}")
    print(done.stdout, end="")


def _machine() -> str:
    machine = platform.machine()
    return "arm64" if machine == "aarch64" else machine


def _sizes(target: Target, out: Path) -> str:
    """A table of the unzipped sizes in a function with these layers, and the budget."""
    rows = [row for layer in ("lightrag", "core") for row in _items(layer, out / target.named(layer) / "python")]
    rows.sort(key=lambda row: -row[1] - row[2])
    shown, rest = rows[:ROWS], rows[ROWS:]
    shown.append((f"{len(rest)} smaller ones", sum(row[1] for row in rest), sum(row[2] for row in rest)))
    shown.append(("function", size(FUNCTION, caches=False), 0))
    shown.append(("**all**", sum(row[1] for row in shown), sum(row[2] for row in shown)))
    lines = [f"| {target.python}, {target.arch} | files, MiB | bytecode, MiB | MiB |", "|---|---:|---:|---:|"]
    lines += [f"| {name} | {a / MIB:.2f} | {b / MIB:.2f} | {(a + b) / MIB:.2f} |" for name, a, b in shown]
    return "\n".join([*lines, "", f"The budget is {BUDGET // MIB} MiB, Lambda's limit {LIMIT // MIB} MiB."])


def _items(layer: str, folder: Path) -> list[tuple[str, int, int]]:
    """The packages of a layer, each with the bytes of its files and of its bytecode."""
    items: dict[str, tuple[int, int]] = {}
    for path in files(folder):
        item = "metadata and licences" if path.parts[0].endswith(".dist-info") else path.parts[0]
        plain, bytecode = items.get(item, (0, 0))
        weight = (folder / path).stat().st_size
        compiled_file = path.suffix == ".pyc"
        items[item] = (plain, bytecode + weight) if compiled_file else (plain + weight, bytecode)
    return [(f"{layer}: {item}", plain, bytecode) for item, (plain, bytecode) in items.items()]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
