"""Small chat models whose weights come from packages, on llama.cpp's server."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cragside.adapters.openai import OpenAIHost
from cragside.databases.renewable import Fixed
from tests.services.llama_cpp import KEY, MODELS, model_server

Evaluate = Callable[[argparse.Namespace, OpenAIHost], Awaitable[None]]


def parser_of(description: str | None, *, questions: int) -> argparse.ArgumentParser:
    """Read the model and the number of questions from the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="smollm2:135m")
    parser.add_argument("--questions", type=int, default=questions)
    parser.add_argument("--url", help="a server of llama.cpp that has the model already")
    return parser


def run(options: argparse.Namespace, evaluate: Evaluate) -> None:
    """Start the server of the chosen model, and evaluate it."""
    logging.disable(logging.WARNING)

    async def on(url: str) -> None:
        host = OpenAIHost(f"{url}/v1", Fixed(KEY), parallel=1, chat_model=options.model)
        try:
            await evaluate(options, host)
        finally:
            await host.close()

    if options.url:
        asyncio.run(on(options.url))
        return
    with model_server(options.model) as server:
        asyncio.run(on(server.url))
