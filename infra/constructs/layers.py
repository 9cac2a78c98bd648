"""The layers with the application and its dependencies."""

from collections.abc import Mapping
from pathlib import Path

from aws_cdk.aws_lambda import Architecture, Code, LayerVersion, Runtime
from constructs import Construct

RUNTIMES = {"3.11": Runtime.PYTHON_3_11, "3.12": Runtime.PYTHON_3_12, "3.13": Runtime.PYTHON_3_13}
ARCHITECTURES = {"x86_64": Architecture.X86_64, "arm64": Architecture.ARM_64}


class Layers(Construct):
    """A layer for each named folder, which becomes /opt."""

    def __init__(
        self, scope: Construct, name: str, folders: Mapping[str, Path], python: str, architecture: str
    ) -> None:
        super().__init__(scope, name)
        self.versions = [
            LayerVersion(
                self,
                layer,
                code=Code.from_asset(str(folder)),
                description=f"cragside: {layer}",
                compatible_runtimes=[RUNTIMES[python]],
                compatible_architectures=[ARCHITECTURES[architecture]],
            )
            for layer, folder in folders.items()
        ]
