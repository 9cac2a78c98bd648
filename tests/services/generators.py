"""Generators of clients from an OpenAPI document, each at a pinned version in an environment of its own."""

from pathlib import Path

from tests.services import npm, tools

_TYPESCRIPT = Path(__file__).parents[2] / "tools/typescript_client"
# The generator and all that it needs. Its typer is older than cragside's.
_PYTHON = (
    "annotated-doc==0.0.7",
    "annotated-types==0.8.0",
    "anyio==4.16.0",
    "attrs==26.1.0",
    "certifi==2026.10.18",
    "h11==0.16.0",
    "httpcore==1.0.9",
    "httpx==0.28.1",
    "idna==3.20",
    "jinja2==3.1.6",
    "markdown-it-py==4.3.0",
    "markupsafe==3.0.4",
    "mdurl==0.1.2",
    "openapi-python-client==0.29.1",
    "pydantic==2.14.3",
    "pydantic-core==2.50.4",
    "pygments==2.21.0",
    "rich==15.0.0",
    "ruamel-yaml==0.19.1",
    "ruff==0.17.6",
    "shellingham==1.5.4",
    "typer==0.27.3",
    "typing-extensions==4.16.0",
    "typing-inspection==0.4.5",
)
_CONFIGURATION = "post_hooks: []\n"


def python_client(document: Path, folder: Path) -> Path:
    """Generate the package `client` in a folder, and return the Python that can run it. Raises `Unavailable`.

    A warning of the generator is a failure too: it leaves out what it does not understand.
    """
    cache = tools.cache("openapi-python-client")
    with tools.exclusive(cache):
        python = tools.environment(cache, _PYTHON)
    configuration = folder / "configuration.yaml"
    configuration.write_text(_CONFIGURATION)
    command = [str(python.with_name("openapi-python-client")), "generate", "--meta", "none", "--fail-on-warning"]
    options = {"--path": document, "--output-path": folder / "client", "--config": configuration}
    tools.run([*command, *(str(part) for option in options.items() for part in option)], cwd=folder)
    return python


def typescript_module(document: Path, module: Path) -> None:
    """Generate the folder `module` with a client in TypeScript. Raises `Unavailable`."""
    generator = _typescript("@hey-api/openapi-ts/bin/run.js")
    tools.run([str(npm.NODE), str(generator), "-i", str(document), "-o", str(module)], cwd=document.parent)


def typescript_compiler() -> Path:
    """The program that compiles TypeScript. Raises `Unavailable`."""
    return _typescript("typescript/bin/tsc")


def typescript_client(document: Path, folder: Path, program: Path) -> Path:
    """Generate the module `client` in a folder, compile it with a program, and return the program's JavaScript.

    Raises `Unavailable`, also for a program that does not fit the client's types.
    """
    source = folder / "source"
    typescript_module(document, source / "client")
    (source / program.name).write_text(program.read_text())
    options = ["--strict", "--target", "es2023", "--lib", "es2023,dom,dom.iterable", "--module", "commonjs"]
    compiled = folder / "compiled"
    compile_all = [str(npm.NODE), str(typescript_compiler()), *options, "--outDir", str(compiled)]
    tools.run([*compile_all, str(source / program.name)], cwd=folder)
    return compiled / program.with_suffix(".js").name


def _typescript(program: str) -> Path:
    return npm.installed(_TYPESCRIPT, "typescript-client", program)
