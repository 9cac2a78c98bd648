"""Makes the console's parts of other projects: python -m tools.vendor_console [FOLDER].

npm installs what `tools/console_parts/package-lock.json` pins, and esbuild bundles it. The bundles, the style sheet
and the licences are committed, so neither users nor the build of the wheel need Node.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PARTS = Path(__file__).parent / "console_parts"
VENDOR = Path(__file__).parents[1] / "layers/core/python/cragside/entrypoints/console/static/vendor"
BUNDLES = ("ui.js", "graph.js")
_STYLE = "node_modules/@picocss/pico/css/pico.min.css"
_BUNDLER = "node_modules/esbuild"
_TYPES = "node_modules/graphology-types"
_OPTIONS = ("--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none")


def shipped() -> dict[str, str]:
    """The packages in the bundles with their versions, as the lock file pins them."""
    packages = json.loads((PARTS / "package-lock.json").read_text())["packages"]
    left_out = (_BUNDLER, _TYPES)
    return {
        path.removeprefix("node_modules/"): entry["version"]
        for path, entry in sorted(packages.items())
        if path and path not in left_out and not entry.get("optional")
    }


def vendor(target: Path) -> None:
    """Write the bundles, the style sheet and the licences to a folder."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(shutil.copytree(PARTS, Path(scratch) / "parts"))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path}
        npm = ("npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
        subprocess.run(npm, cwd=work, env=environment, check=True)  # noqa: S603 - a fixed command
        for name in BUNDLES:
            bundling = ("node_modules/.bin/esbuild", name, *_OPTIONS, f"--outfile={target / name}")
            subprocess.run(bundling, cwd=work, env=environment, check=True, capture_output=True)  # noqa: S603 - the same
        shutil.copy(work / _STYLE, target / "pico.css")
        (target / "LICENSES.txt").write_text(_licences(work))


def _licences(work: Path) -> str:
    """The licence of each package in the bundles, under its name and version."""
    texts = []
    for name, version in shipped().items():
        folder = work / "node_modules" / name
        licence = next(file for file in sorted(folder.iterdir()) if file.name.lower().startswith("licen"))
        texts.append(f"{name} {version}\n\n{licence.read_text().strip()}\n")
    return f"\n{'-' * 80}\n\n".join(texts)


if __name__ == "__main__":
    vendor(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else VENDOR)
