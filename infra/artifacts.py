"""What a deployment ships: folders that are made before the app is synthesised."""

from dataclasses import dataclass
from pathlib import Path

from infra.environments.model import Environment, KnowledgeLayer

ROOT = Path(__file__).parent.parent


class MissingArtifact(Exception):
    """A folder of the deployment is not there; the message says what makes it."""

    def __init__(self, folder: Path, remedy: str) -> None:
        super().__init__(f"{folder} is not there. {remedy}")


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The folders of the function, of its layers (each holds `python/`), and of the baked store, if it is a layer."""

    function: Path
    layers: dict[str, Path]
    knowledge: Path | None = None

    def checked(self, environment: Environment) -> "Artifacts":
        """These artifacts. Raises `MissingArtifact` for a folder that is not there."""
        if not self.function.is_dir():
            raise MissingArtifact(self.function, "It is part of the repository.")
        for folder in (layer / "python" for layer in self.layers.values()):
            if not folder.is_dir():
                make = f"make layers ARCH={environment.architecture} PYTHON_VERSION={environment.python}"
                raise MissingArtifact(folder, f"`{make}` builds it.")
        if self.knowledge is not None and not (self.knowledge / "baked.json").is_file():
            raise MissingArtifact(
                self.knowledge / "baked.json", f"`cragside bake PATH... --out {self.knowledge}` bakes a store."
            )
        return self


def artifacts_of(environment: Environment, root: Path = ROOT) -> Artifacts:
    """Where the artifacts of an environment lie under the top of the repository."""
    knowledge = environment.knowledge
    built, target = root / "build" / "layers", f"{environment.python}-{environment.architecture}"
    return Artifacts(
        function=root / "functions" / "enrich",
        layers={"Core": built / f"core-{target}", "LightRag": built / f"lightrag-{target}"},
        knowledge=root / knowledge.path if isinstance(knowledge, KnowledgeLayer) else None,
    )
