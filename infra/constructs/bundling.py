"""Prepares folders for Lambda."""

import shutil
from pathlib import Path
from typing import Any

import jsii
from aws_cdk import BundlingOptions, DockerImage, ILocalBundling


def readable(folder: Path, into: str = ".") -> BundlingOptions:
    """Bundle the folder as `into`, readable for all: Lambda is another user, and the zip keeps the files' modes."""
    # CDK requires an image in case the local bundling declines, which it never does.
    return BundlingOptions(image=DockerImage.from_registry("unused"), local=_Readable(folder, into))


@jsii.implements(ILocalBundling)
class _Readable:
    def __init__(self, folder: Path, into: str) -> None:
        self._folder = folder
        self._into = into

    def try_bundle(self, output_dir: str, *_: Any, **__: Any) -> bool:
        target = Path(output_dir) / self._into
        shutil.copytree(self._folder, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        for path in (target, *target.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return True
