"""The images of the stack: cragside's and PostgreSQL's from their real Dockerfiles, the others from packages.

No upstream image is pulled. What stands in for one has its folders, users, variables and ports as far as the compose
file uses them. An image is built when something that it is made of has changed.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.compose import ROOT
from tests.containers.engine import Engine
from tests.services import debian, ministack, neo4j_server, ollama, searxng, tools
from tests.services.tools import Unavailable

_STAND_INS = Path(__file__).with_name("images")
_DEBIAN = "docker.io/library/debian:13.6-slim"
_PYTHON = "docker.io/library/python:3.12.15-slim-trixie"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_SETTINGS = '[containers]\ndefault_ulimits=[]\n[engine]\nruntime="runc"\n'
LAMBDA_RUNTIME = ("awslambdaric==4.2.2", "boto3==1.44.5")
# What goes into the image of cragside.
_SOURCES = ("Dockerfile", ".dockerignore", "pyproject.toml", "uv.lock", "README.md", "LICENSE", "tools/uv.txt")


@dataclass(frozen=True)
class Recipe:
    """An image: the folder of its Dockerfile, and what the build finds in /from."""

    folder: Path
    given: Mapping[str, Path] = field(default_factory=dict)
    # What else it depends on.
    made_of: tuple[str, ...] = ()

    def digest(self, files: Iterable[Path] = ()) -> str:
        """A name for all that the image is made of."""
        found = hashlib.sha256("\0".join([*self.made_of, *self.given]).encode())
        for path in files or sorted(path for path in self.folder.rglob("*") if path.is_file()):
            found.update(path.read_bytes())
        return found.hexdigest()[:12]


class Images:
    """Builds images with podman, and gives them to the engine. Raises `Unavailable`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._home = engine.home
        self.told: list[str] = []

    def all(self) -> dict[str, str]:
        """The image of each service, as the overlay names it."""
        self._debian()
        python = Recipe(_STAND_INS / "python", {"ca-certificates.crt": _CERTIFICATES})
        self._build(python, _PYTHON)
        ours = self._ours()
        stand_ins = {name: self._image(name, recipe) for name, recipe in self._recipes().items()}
        postgres = self._image("postgres", Recipe(ROOT / "packaging/postgres"))
        return {
            **stand_ins,
            "postgres": postgres,
            "models": stand_ins["ollama"],
            **dict.fromkeys(("migrate", "api", "worker"), ours),
        }

    def databases(self) -> dict[str, str]:
        """The images of PostgreSQL and Neo4j alone."""
        self._debian()
        postgres = self._image("postgres", Recipe(ROOT / "packaging/postgres"))
        return {"postgres": postgres, "neo4j": self._image("neo4j", self._neo4j())}

    def _neo4j(self) -> Recipe:
        return Recipe(_STAND_INS / "neo4j", {"jars": neo4j_server.jars_folder()}, (neo4j_server.VERSION,))

    def lambda_runtime(self) -> str:
        """The image of Lambda's Python runtime."""
        self._debian()
        written = self._home / "requirements"
        written.mkdir(exist_ok=True)
        (written / "lambda.txt").write_text("\n".join(LAMBDA_RUNTIME))
        given = {"requirements.txt": written / "lambda.txt", "ca-certificates.crt": _CERTIFICATES}
        return self._image("lambda", Recipe(_STAND_INS / "lambda", given, LAMBDA_RUNTIME))

    def _recipes(self) -> dict[str, Recipe]:
        written = self._home / "requirements"
        written.mkdir(exist_ok=True)
        packages = {"searxng": searxng.REQUIREMENTS, "aws": ministack.REQUIREMENTS}
        for name, requirements in packages.items():
            (written / f"{name}.txt").write_text("\n".join(requirements))
        server = ollama.server()  # built if it is not there
        tools.remove(server.home)
        return {
            "neo4j": self._neo4j(),
            "ollama": Recipe(
                _STAND_INS / "ollama",
                {"ollama": server.binary, "models": server.models},
                (ollama.VERSION, (server.models / "created.txt").read_text()),
            ),
            **{
                name: Recipe(_STAND_INS / name, {"requirements.txt": written / f"{name}.txt"}, packages[name])
                for name in packages
            },
        }

    def _ours(self) -> str:
        sources = [ROOT / name for name in _SOURCES]
        package = [path for path in (ROOT / "layers/core/python").rglob("*") if path.is_file()]
        kept = sorted(path for path in package if "__pycache__" not in path.parts)
        return self._image("cragside", Recipe(ROOT), files=[*sources, *kept])

    def _image(self, name: str, recipe: Recipe, files: Iterable[Path] = ()) -> str:
        image = f"localhost/cragside-test/{name}:{recipe.digest(files)}"
        if not self._engine.docker("image", "ls", "--quiet", image).strip():
            self._build(recipe, image)
            save = [*self._podman(), "save", "--quiet", image]
            with subprocess.Popen(save, stdout=subprocess.PIPE, env=self._environment()) as archive:
                self._engine.load(archive)
            self.told.append(f"built {name}")
        return image

    def _build(self, recipe: Recipe, image: str) -> None:
        if self._has(image):
            return
        volumes = [f"--volume={source}:/from/{name}:ro" for name, source in recipe.given.items()]
        build = ["build", "--quiet", "--format", "docker", "--tag", image, *volumes, str(recipe.folder)]
        tools.run([*self._podman(), *build], env=self._environment())

    def _debian(self) -> None:
        """Debian's base image, made as Debian makes it."""
        if self._has(_DEBIAN):
            return
        root = self._home / debian.RELEASE
        reason = "apt's configuration names no mirror of Debian"
        for mirror in debian.mirrors():
            tools.remove(root)
            make = ["debootstrap", "--variant=minbase", "--include=ca-certificates", debian.RELEASE, str(root), mirror]
            try:
                tools.run(make)
            except Unavailable as error:
                reason = str(error)
            else:
                break
        else:
            raise Unavailable(f"Debian could not be had: {reason}")
        archive = self._home / "debian.tar"
        tools.run(["tar", "-C", str(root), "-cf", str(archive), "."])
        tools.run([*self._podman(), "import", str(archive), _DEBIAN], env=self._environment())
        archive.unlink()
        tools.remove(root)

    def _has(self, image: str) -> bool:
        asked = [*self._podman(), "image", "exists", image]
        return subprocess.run(asked, env=self._environment(), capture_output=True, check=False).returncode == 0

    def _podman(self) -> list[str]:
        places = ["--root", str(self._home / "podman/storage"), "--runroot", str(self._home / "podman/run")]
        return ["nice", "-n", "10", "podman", *places]

    def _environment(self) -> dict[str, str]:
        # Limits can't be raised in every container, and crun refuses mixed cgroups.
        settings = self._home / "containers.conf"
        settings.write_text(_SETTINGS)
        return {**os.environ, "CONTAINERS_CONF": str(settings)}
