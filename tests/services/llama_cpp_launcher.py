"""Starts llama.cpp's server, which the package `xllamacpp` has as a library: WEIGHTS PORT NAME LONGEST [POOLING].

It runs in the environment of `llama_cpp`. The key is in the environment variable LLAMA_API_KEY, as for `llama-server`.
CHAT_TEMPLATE names the format of prompts for weights that have none.
"""

import os
import signal
import sys

import xllamacpp  # type: ignore[import-not-found,unused-ignore]


def main() -> None:
    """Serve until a signal comes."""
    weights, port, name, longest, *pooling = sys.argv[1:]
    wanted = xllamacpp.CommonParams()
    wanted.model.path = weights
    wanted.model_alias = {name}
    wanted.hostnames, wanted.port = ["127.0.0.1"], int(port)
    wanted.api_keys = [os.environ["LLAMA_API_KEY"]]
    wanted.n_ctx = 0  # what the model was trained with
    wanted.n_parallel = 1
    wanted.fit_params = wanted.warmup = wanted.ui = False
    # Threads that wait for each other spin; beside other work that makes a token take 1 s instead of 0.02 s.
    wanted.cpuparams.n_threads = 1
    if template := os.environ.get("CHAT_TEMPLATE"):
        wanted.chat_template = template
    if pooling:
        wanted.embedding = True
        wanted.n_batch = wanted.n_ubatch = int(longest)
        wanted.pooling_type = xllamacpp.llama_pooling_type[f"LLAMA_POOLING_TYPE_{pooling[0]}"]
    running = xllamacpp.Server(wanted)
    print(running.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
