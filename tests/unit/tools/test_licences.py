from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from tools.licences import Unreadable, complaints, permitted, shipped, stated

PLAIN = {"runtime": ["MIT"], "development": ["MPL-2.0"], "stated": {}, "exceptions": {}}


class Made(Distribution):
    """A distribution with the given metadata."""

    def __init__(self, name: str, *fields: tuple[str, str]) -> None:
        self._message = Message()
        for field, value in (("Name", name), *fields):
            self._message[field] = value

    @property
    def metadata(self) -> Any:
        return self._message

    def read_text(self, filename: str) -> str | None:
        return None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


def test_shipped_packages_are_distinguished_from_test_packages() -> None:
    names = shipped()
    assert {"cragside", "fastapi", "lightrag-hku", "trafilatura", "mangum", "certifi"} <= names
    assert not {"pytest", "mypy", "aws-cdk-lib", "moto"} & names


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("(GPL-3.0-only OR MIT) AND ISC", True),
        ("GPL-3.0-only OR MIT AND AGPL-3.0-only", False),
        ("mit", False),
    ],
)
def test_an_expression_is_read_as_spdx_defines_it(expression: str, allowed: bool) -> None:
    assert permitted(expression, ["MIT", "ISC"]) is allowed


@pytest.mark.parametrize(
    "text", ["", "BSD, kind of", "MIT AND", "(MIT", "MIT)", "MIT MIT", "AND", "MIT/ISC", "See LICENSE"]
)
def test_an_invalid_licence_expression_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        permitted(text, ["MIT", "BSD", "See", "LICENSE"])


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT"), ("License", "GPL")], "MIT"),
        ([("Classifier", "License :: OSI Approved :: MIT License")], "MIT"),
        (
            [
                ("Classifier", "License :: OSI Approved :: MIT License"),
                ("Classifier", "License :: OSI Approved :: GPLv3"),
            ],
            "MIT AND GPLv3",
        ),
        ([("Classifier", "License :: OSI Approved"), ("License", "Apache-2.0")], "Apache-2.0"),
        ([], ""),
    ],
)
def test_the_licence_is_that_of_the_metadata(fields: list[tuple[str, str]], licence: str) -> None:
    assert stated(Made("a", *fields)) == licence


def test_a_licence_that_is_not_allowed_is_complained_of_until_it_has_a_reason() -> None:
    found = [Made("A.B", ("License-Expression", "GPL-3.0-only"))]
    assert "a-b: GPL-3.0-only is not allowed" in complaints(PLAIN, found, {"a-b"})[0]
    assert not complaints({**PLAIN, "exceptions": {"a-b": "a reason"}}, found, {"a-b"})


def test_test_packages_may_have_licences_that_may_not_be_shipped() -> None:
    found = [Made("a", ("License-Expression", "MPL-2.0"))]
    assert complaints(PLAIN, found, {"a"})
    assert not complaints(PLAIN, found, set())


def test_unknown_licences_and_unused_entries_are_reported() -> None:
    said = complaints({**PLAIN, "stated": {"gone": "MIT"}}, [Made("a")], set())
    assert "not an SPDX expression" in said[0]
    assert said[1].startswith("gone: it is not installed")
