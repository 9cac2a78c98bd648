"""The cold function on generations in S3, and the publication of one, by the number of passages.

`python -m benchmarks.generations [--passages 1000 20000] [--python 3.12] [--rounds 3] [--json FILE]`

The emulator of `make e2e` stands in for S3, on loopback. Times of S3 are others, so the sizes are shown too. The
function runs under Lambda's runtime interface emulator, with the layers that are deployed. `first` is the first `/rag`
after INIT, which fetches, checks and opens the workspace.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import time
from pathlib import Path
from unittest.mock import patch

import boto3

from benchmarks import corpus
from benchmarks.coldstart import TOKEN, Measured, _ask, layers
from benchmarks.coldstart_parts import event
from benchmarks.emulator import Runtime, emulated, lambda_environment, runtime, version_here
from benchmarks.harness import ROOT, machine, report, scratch, table
from benchmarks.stores import store
from cragside.adapters.aws.versions import S3VersionedStore
from cragside.store.generations import Generation, publish_generation
from tests.services.ministack import Ministack, credentials

_BUCKET = "generations"
_WARM = 20


def published(passages: int, folder: Path) -> tuple[Generation, float]:
    """Publish a store of so many passages, and return the seconds that packing and sending it took."""
    copy = folder / f"home-{passages}" / "default"
    shutil.copytree(store(passages) / "default", copy)
    began = time.perf_counter()
    objects = S3VersionedStore(_BUCKET, str(passages))
    generation = asyncio.run(publish_generation(objects, "default", copy, None))
    return generation, time.perf_counter() - began


def turn(function: Measured, at: Runtime, passages: int, aws: dict[str, str], folder: Path) -> dict[str, float]:
    """One environment's life: INIT with a health check, then several `/rag` requests. Times in ms."""
    variables = {"RAG_API_TOKEN": TOKEN, "RAG_GENERATIONS": f"s3://{_BUCKET}/{passages}", "TMPDIR": str(folder)}
    env = {**lambda_environment(function.task, function.opt, **variables), **aws}
    with emulated(at, env, folder / f"{passages}.log") as invoked:
        invoked.invoke(event("/healthz"))
        taken = [_ask(invoked, question) for question in corpus.questions(passages, _WARM + 1)]
        return {"INIT": invoked.init_ms(), "first": taken[0], "warm": statistics.median(taken[1:])}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--passages", type=int, nargs="+", default=[1_000, 20_000], help="sizes (%(default)s)")
    parser.add_argument("--python", default=version_here(), help="the runtime's version (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="save the figures")
    arguments = parser.parse_args()
    at, rows, figures = runtime(arguments.python), list[list[str]](), dict[str, float]()
    with scratch() as folder, Ministack() as emulator:
        aws = {name: value for name, value in credentials(folder, emulator.url).items() if name.startswith("AWS_")}
        with patch.dict(os.environ, aws):
            boto3.client("s3").create_bucket(Bucket=_BUCKET)
            function = Measured("enrich", ROOT / "functions" / "enrich", layers(arguments.python))
            for passages in arguments.passages:
                generation, seconds = published(passages, folder)
                turns = [turn(function, at, passages, aws, folder) for _ in range(arguments.rounds)]
                medians = {name: statistics.median(each[name] for each in turns) for name in turns[0]}
                sizes = generation.file.bytes / 1e6, generation.object.size / 1e6, seconds
                rows.append([f"{passages:,}", *map("{:,.1f}".format, sizes), *map("{:,.0f}".format, medians.values())])
                figures |= {f"{passages}: {name}": value for name, value in {**medians, "published": seconds}.items()}
    head = ["passages", "MB", "packed, MB", "publishing, s", "INIT, ms", "first `/rag`, ms", "warm, ms"]
    print(f"\n{table(head, rows)}")
    line = f"{machine()}; functions on Python {arguments.python}"
    report("The function on generations", [], figures, machine_line=line, file=arguments.json)


if __name__ == "__main__":
    main()
