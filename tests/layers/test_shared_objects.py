"""Stripping shared objects without binutils, tried on those of this interpreter's packages."""

import ctypes
import importlib.util
import sys
from pathlib import Path

import pytest

from layers.lightrag.elf import stripped

# With debug information (xxhash, aiohttp) and without (pydantic_core).
OBJECTS = ["xxhash._xxhash", "aiohttp._http_parser", "pydantic_core._pydantic_core"]


@pytest.mark.skipif(sys.platform != "linux", reason="ELF files are Linux' own")
@pytest.mark.parametrize("module", OBJECTS)
def test_a_stripped_object_is_smaller_and_loads(module, tmp_path):
    image = Path(importlib.util.find_spec(module).origin).read_bytes()
    small = stripped(image)
    assert len(small) < len(image) or b".symtab" not in image
    assert stripped(small) == small
    copy = tmp_path / "stripped.so"
    copy.write_bytes(small)
    assert getattr(ctypes.CDLL(str(copy)), f"PyInit_{module.rpartition('.')[2]}")


@pytest.mark.parametrize(
    "image", [b"", b"\x7fELF", b"\x7fELF\x02\x01", b"\x7fELF\x01\x01" + bytes(80), b"a text\n" * 20]
)
def test_other_files_than_shared_objects_are_unchanged(image):
    assert stripped(image) == image


def test_an_object_without_a_section_table_is_unchanged():
    image = b"\x7fELF\x02\x01" + bytes(100)
    assert stripped(image) == image
