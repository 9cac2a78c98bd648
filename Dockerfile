# The image of cragside: service, worker and every other command. docs/compose.md says how to run it.
ARG PYTHON_IMAGE=python:3.12.15-slim-trixie

FROM ${PYTHON_IMAGE} AS build
# Where PyPI has no wheel for a processor, the package is built from its source.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY tools/uv.txt tools/
RUN python -m venv /uv && /uv/bin/pip install --no-cache-dir --require-hashes --requirement tools/uv.txt
ENV UV_PROJECT_ENVIRONMENT=/opt/cragside UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
# `servers`: PostgreSQL, Neo4j, Redis, Qdrant; `aws`: S3 and SQS; `ocr`: pictures of text.
ARG EXTRAS="aws ocr otel servers"
COPY pyproject.toml uv.lock README.md LICENSE ./
# What cragside depends on changes less often than cragside.
RUN /uv/bin/uv sync --frozen --no-dev --no-install-project --python "$(command -v python)" \
    $(printf -- '--extra %s ' ${EXTRAS})
COPY layers/core/python layers/core/python
RUN /uv/bin/uv sync --frozen --no-dev --no-editable --python "$(command -v python)" \
    $(printf -- '--extra %s ' ${EXTRAS})

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 cragside \
    && useradd --uid 10001 --gid cragside --no-create-home --home-dir /var/lib/cragside cragside \
    && install --directory --owner cragside --group cragside --mode 0700 /var/lib/cragside
COPY --from=build /opt/cragside /opt/cragside
# The root file system may be read-only: cragside writes to RAG_HOME and /tmp alone.
ENV PATH=/opt/cragside/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 RAG_HOME=/var/lib/cragside
WORKDIR /var/lib/cragside
USER 10001:10001
VOLUME /var/lib/cragside
EXPOSE 8642
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8642/healthz', timeout=3)"]
ENTRYPOINT ["cragside"]
# Beyond loopback, it starts only with RAG_API_TOKEN.
CMD ["serve", "--host", "0.0.0.0"]
