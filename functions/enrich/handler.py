"""API Gateway -> cragside's routes, through Mangum; configured by the environment (docs/lambda.md)."""

import gc

# What is imported stays. To look through it after each 700 new objects is a tenth of a cold start.
gc.set_threshold(50_000)

from cragside.entrypoints.aws_lambda.function import start  # noqa: E402 - imports are what is to be fast

handler = start()
