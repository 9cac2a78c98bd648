"""Target of a build of layers."""

from dataclasses import dataclass

# Lambda's names and uv's. Amazon Linux 2023, which Python 3.12 and later use, has glibc 2.34.
PLATFORMS = {"x86_64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_28"}


@dataclass(frozen=True)
class Target:
    """The target of a build. `compiler` is an interpreter of its version, or None."""

    arch: str
    python: str
    compiler: str | None

    def named(self, layer: str) -> str:
        """The name of a layer's folder."""
        return f"{layer}-{self.python}-{self.arch}"
