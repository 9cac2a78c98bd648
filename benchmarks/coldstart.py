"""The Lambda function cold and warm, compared with a bare FastAPI and Mangum function.

`python -m benchmarks.coldstart [--quick] [--python 3.12] [--rounds N] [--json FILE]`

Runs both functions in turns under Lambda's runtime interface emulator, and measures INIT as the emulator reports it,
the first `/rag` after it, and later ones; besides, the CPU of INIT and of the first `/rag`, which other load on the
machine changes less. Both use the same runtime and layers of the same kind: versions of one lock,
compiled to bytecode alike. `ahead` is the way of SnapStart and provisioned concurrency: INIT loads everything heavy.
Restoring a snapshot is done by Lambda and cannot be measured here. Figures are medians of the rounds; without bytecode,
of every other round. The token is a plain one, and requests are not traced. With a token in a secret, the first `/rag`
takes longer.
"""

import argparse
import hashlib
import importlib.metadata
import json
import platform
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.coldstart_parts import event
from benchmarks.emulator import Runtime, emulated, lambda_environment, runtime, uv, version_here
from benchmarks.harness import CRAGSIDE, ROOT, Target, cache_folder, environment, machine, report, scratch, table
from benchmarks.stores import CHUNKING, PASSAGES_A_DOCUMENT

PASSAGES = 1_000
TOKEN = "measured"
WARM = 20
_BARE = ("fastapi", "mangum")
_BARE_HANDLER = """from fastapi import FastAPI
from mangum import Mangum

app = FastAPI()


@app.get("/healthz")
async def healthz() -> dict[str, bool]:
    return {"ok": True}


handler = Mangum(app, lifespan="off")
"""
# If the environment set Lambda's variable, the emulator's runtime client would wait for a snapshot.
_AHEAD_HANDLER = """import os
import runpy

os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"] = "provisioned-concurrency"
handler = runpy.run_path({path!r})["handler"]
"""


@dataclass(frozen=True)
class Measured:
    """A function to measure: its folder, its layers, and whether it answers `/rag`."""

    name: str
    task: Path
    opt: tuple[Path, ...]
    asks: bool = True


def layers(python: str) -> tuple[Path, Path]:
    """The core and the third-party layer for this machine, built if missing."""
    arch = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
    out = ROOT / "build" / "layers"
    command = [sys.executable, "-m", "layers.lightrag.build", "--arch", arch, "--python", python, "--out", str(out)]
    subprocess.run([*command, "--uv", uv()], cwd=ROOT, check=True)
    return out / f"core-{python}-{arch}" / "python", out / f"lightrag-{python}-{arch}" / "python"


def bare_layer(at: Runtime, python: str) -> Path:
    """FastAPI, Mangum and their dependencies, in the versions of the lock, compiled like our layers."""
    export = [uv(), "export", "-q", "--frozen", "--no-dev", "--no-emit-project", "--extra", "aws", "--no-hashes"]
    locked = subprocess.run(export, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folder = cache_folder() / f"bare-{python}-{hashlib.sha256(locked.encode()).hexdigest()[:12]}"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        target, constraints = folder / "python", folder / "constraints.txt"
        folder.mkdir(parents=True)
        constraints.write_text(locked)
        install = [uv(), "pip", "install", "-q", "--python", str(at.python), "--target", str(target)]
        subprocess.run([*install, "--constraints", str(constraints), *_BARE], check=True)
        compile_all = [str(at.python), "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(target)]
        subprocess.run(compile_all, check=True)
        (folder / "ready").touch()
    return folder / "python"


def baked_store(folder: Path) -> Path:
    """A baked store of the corpus, made by `cragside bake`."""
    home = cache_folder() / f"baked-{PASSAGES}-{corpus.VERSION}-{importlib.metadata.version('cragside')}"
    if not (home / "baked.json").exists():
        print(f"baking {PASSAGES:,} passages into {home} (once) ...", flush=True)
        texts = folder / "texts"
        texts.mkdir()
        for name, text in corpus.documents(corpus.passages(PASSAGES), each=PASSAGES_A_DOCUMENT):
            (texts / f"{name}.md").write_text(text)
        command = [CRAGSIDE, "bake", str(texts), "--out", str(home)]
        subprocess.run(command, env=environment(**CHUNKING), check=True, stdout=subprocess.DEVNULL)
    return home


def without_bytecode(opt: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """Copies of layers without bytecode."""
    copies = tuple(folder / f"{number}" for number in range(len(opt)))
    for layer, copy in zip(opt, copies, strict=True):
        shutil.copytree(layer, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copies


def functions(folder: Path, at: Runtime, python: str) -> list[Measured]:
    """The functions to measure, in the order of the turns."""
    core, lightrag = layers(python)
    bare = bare_layer(at, python)
    enrich = ROOT / "functions" / "enrich"
    handlers = {"bare": _BARE_HANDLER, "ahead": _AHEAD_HANDLER.format(path=str(enrich / "handler.py"))}
    for name, source in handlers.items():
        (folder / name).mkdir()
        (folder / name / "handler.py").write_text(source)
    (folder / "plain").mkdir()
    plain = without_bytecode((core, lightrag, bare), folder / "plain")
    return [
        Measured("bare", folder / "bare", (bare,), asks=False),
        Measured("enrich", enrich, (core, lightrag)),
        Measured("enrich, ahead", folder / "ahead", (core, lightrag)),
        Measured("bare, no bytecode", folder / "bare", plain[2:], asks=False),
        Measured("enrich, no bytecode", enrich, plain[:2]),
    ]


def turn(function: Measured, at: Runtime, home: Path, questions: list[str], log: Path) -> dict[str, float]:
    """One environment's life: INIT with a health check, then several `/rag` requests. Times in ms."""
    env = lambda_environment(function.task, function.opt, RAG_HOME=str(home), RAG_API_TOKEN=TOKEN)
    with emulated(at, env, log) as invoked:
        answer, _ = invoked.invoke(event("/healthz"))
        if answer.get("statusCode") != 200:
            raise SystemExit(f"{function.name}: {answer}\n{log.read_text()[-3000:]}")
        taken = [_ask(invoked, question) for question in questions] if function.asks else []
        figures = {"init": invoked.init_ms()}
    return figures if not taken else {**figures, "first": taken[0], "warm": statistics.median(taken[1:])}


def _ask(invoked: Any, question: str) -> float:
    answer, milliseconds = invoked.invoke(event("/v1/enrich", {"prompt": f"/rag {question}"}, TOKEN))
    context = json.loads(answer["body"]).get("metadata", {}).get("rag_context")
    if answer["statusCode"] != 200 or not context["documents"]:
        raise SystemExit(f"No evidence: {answer}")
    return float(milliseconds)


def inside(what: str, function: Measured, at: Runtime, home: Path, questions: list[str]) -> Any:
    """The figures that `benchmarks.coldstart_parts` measures inside the runtime."""
    task = function.task if what == "cold" else ROOT
    env = lambda_environment(task, function.opt, RAG_HOME=str(home), RAG_API_TOKEN=TOKEN, POWERTOOLS_LOG_LEVEL="INFO")
    command = [str(at.python), "benchmarks/coldstart_parts.py", what, "--token", TOKEN]
    done = subprocess.run(
        command, env=env, cwd=ROOT, input=json.dumps(questions), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{what}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def parts_table(runs: list[list[tuple[str, str, float]]]) -> str:
    """The parts of INIT and of the first `/rag`, each the median of the runs."""
    phases = {
        "INIT": "INIT",
        "first": "first `/rag`",
        "second": "second `/rag`",
        "token": "first that needs it",
    }
    taken: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs:
        for phase, name, milliseconds in run:
            taken[phases[phase], name].append(milliseconds)
    rows = [[phase, name, f"{statistics.median(values):,.0f}"] for (phase, name), values in taken.items()]
    return table(["of", "part", "ms"], rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a smoke test of one round")
    parser.add_argument("--python", default=version_here(), help="the runtime's version (%(default)s)")
    parser.add_argument("--rounds", type=int, help="rounds (5)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    rounds = arguments.rounds or (1 if arguments.quick else 5)
    at = runtime(arguments.python)
    taken: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    asked = corpus.questions(PASSAGES, 600)
    with scratch() as folder:
        home = baked_store(folder)
        measured = functions(folder, at, arguments.python)
        line = f"{machine()}; functions on Python {arguments.python}"
        for number in range(rounds):
            for function in measured:
                if "no bytecode" in function.name and number % 2:
                    continue  # they take long, and nobody should deploy them
                figures = turn(function, at, home, asked[: WARM + 1], folder / f"{function.name}-{number}.log")
                for figure, value in figures.items():
                    taken[function.name][figure].append(value)
                used = inside("cold", function, at, home, asked if function.asks else [])
                for figure, value in used.items():
                    taken[function.name][f"{figure}_cpu"].append(value)
        ours = measured[1]
        runs = [inside("parts", ours, at, home, asked) for _ in range(rounds)]
        handled = inside("warm", ours, at, home, asked[: 120 if arguments.quick else None])
    medians = {name: {figure: statistics.median(v) for figure, v in f.items()} for name, f in taken.items()}
    _print(medians, runs)
    targets = [
        Target("INIT / a bare function's", medians["enrich"]["init"] / medians["bare"]["init"], 1.3, "times"),
        Target(
            "INIT's CPU / a bare function's", medians["enrich"]["init_cpu"] / medians["bare"]["init_cpu"], 1.3, "times"
        ),
        Target("first /rag", medians["enrich"]["first"], 700, "ms"),
        Target("handler's share of a warm request", handled["handler"] - handled["application"], 5, "ms"),
    ]
    details = {"medians": medians, "taken": taken, "parts": runs, "warm": handled, "passages": PASSAGES}
    report("Cold start", targets, details, machine_line=line, file=arguments.json)


def _print(medians: dict[str, dict[str, float]], runs: list[list[tuple[str, str, float]]]) -> None:
    head = ["ms", "INIT", "its CPU", "first `/rag`", "its CPU", "later ones"]
    keys = ("init", "init_cpu", "first", "first_cpu", "warm")
    rows = [
        [name, *(f"{figures[key]:,.0f}" if key in figures else "" for key in keys)] for name, figures in medians.items()
    ]
    print(f"\n{table(head, rows)}\n\n{parts_table(runs)}")


if __name__ == "__main__":
    main()
