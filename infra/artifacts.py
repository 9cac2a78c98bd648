"""The folders that a deployment ships. They are built before the synthesis."""

from dataclasses import dataclass
from pathlib import Path

from infra.config import Environment, Indexed, KnowledgeLayer, NotDeployable, Writable
from infra.settings import traced
from layers.lightrag.sizes import LIMIT, MIB
from layers.lightrag.tree import size

ROOT = Path(__file__).parent.parent
_MOST_LAYERS = 5


class MissingArtifact(Exception):
    """A folder of the deployment is missing. The message says how to build it."""

    def __init__(self, folder: Path, remedy: str) -> None:
        super().__init__(f"{folder} is not there. {remedy}")


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The folders of the functions, of their layers (each holds `python/`), and of the baked store, if it is a layer.

    `layers` are those of the function `enrich`.
    """

    function: Path
    layers: dict[str, Path]
    knowledge: Path | None = None
    index: Path = ROOT / "functions" / "index"

    @property
    def index_layers(self) -> dict[str, Path]:
        """The layers of the function `index`: files are parsed when they are taken in."""
        return {name: folder for name, folder in self.layers.items() if name != "Parsers"}

    def checked(self, environment: Environment) -> "Artifacts":
        """Return these artifacts. Raises `MissingArtifact` for a missing folder.

        Raises `NotDeployable` where a function would be larger than Lambda takes.
        """
        if not self.function.is_dir():
            raise MissingArtifact(self.function, "It is part of the repository.")
        for folder in (layer / "python" for layer in self.layers.values()):
            if not folder.is_dir():
                make = f"make layers ARCH={environment.architecture} PYTHON_VERSION={environment.python}"
                raise MissingArtifact(folder, f"`{make}` builds it.")
        self.check_knowledge()
        functions = {
            "enrich": [self.function, *self.layers.values(), *([self.knowledge] if self.knowledge else [])],
            "index": [self.index, *self.index_layers.values()],
        }
        for name, (code, *layers) in functions.items():
            if len(layers) > _MOST_LAYERS:
                raise NotDeployable(f"{name}: it has {len(layers)} layers, and Lambda takes {_MOST_LAYERS}")
            if (weight := sum(map(size, (code, *layers)))) > LIMIT:
                raise NotDeployable(
                    f"{name}: function and layers have {weight / MIB:.0f} MiB, and Lambda takes {LIMIT / MIB:.0f}: "
                    "put a baked store into a bucket, knowledge=s3://BUCKET/PREFIX#SHA256"
                )
        return self

    def check_knowledge(self) -> None:
        """Raises `MissingArtifact` if the folder of the baked store holds none."""
        if self.knowledge is not None and not (self.knowledge / "baked.json").is_file():
            raise MissingArtifact(
                self.knowledge / "baked.json", f"`cragside bake PATH... --out {self.knowledge}` bakes a store."
            )

    def unbuilt(self) -> "Artifacts":
        """Return the same, with a folder that is there in place of each: what is destroyed is not shipped."""
        return Artifacts(self.function, dict.fromkeys(self.layers, self.function), None, self.index)


def artifacts_of(environment: Environment, root: Path = ROOT) -> Artifacts:
    """The artifacts of an environment, below the root of the repository."""
    knowledge = environment.knowledge
    names = {"Core": "core", "LightRag": "lightrag"}
    names |= {"Drivers": "drivers"} if isinstance(knowledge, Writable) else {}
    names |= {"Parsers": "parsers"} if isinstance(knowledge, Indexed) else {}
    names |= {"Traces": "traces"} if traced(environment.settings) else {}
    built, target = root / "build" / "layers", f"{environment.python}-{environment.architecture}"
    return Artifacts(
        function=root / "functions" / "enrich",
        layers={name: built / f"{folder}-{target}" for name, folder in names.items()},
        knowledge=root / knowledge.path if isinstance(knowledge, KnowledgeLayer) else None,
        index=root / "functions" / "index",
    )
