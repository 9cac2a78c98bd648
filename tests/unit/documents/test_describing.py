"""The kind of a document's text, and its tier 1."""

# ruff: noqa: E501 - samples are what they are
import pytest

from cragside.adapters.documents.describing import describe
from cragside.adapters.documents.languages import BY_ENDING, BY_NAME, outline

MAIL = "From: Ada <ada@weir.example>\nTo: ines@weir.example\nSubject: Keys\nDate: Tue, 03 Feb 2026 10:15:00 +0100\n\nIn the mill."
CHAT = "#weir\n[10:32] ada: is the gate shut?\n[10:33] ines: it is\nsince noon\n[10:35] ada: thanks"
PHONE = "05/01/26, 10:32 - Ada: hello\n05/01/26, 10:33 - Ines K: hi\n05/01/26, 10:40 - Ada: bye\n"
HEADED = "Ada Keeper  10:32 AM\nis the gate shut?\n\nInes  10:33 AM\nit is\n\nAda Keeper  10:35 AM\nthanks\n"
NOTES = """# Weir meeting

Date: 2026-02-03
Duration: 45 minutes
Attendees: Ada, Ines and Jürgen
We met on Zoom.

## Action items
- Ada: oil the gate
"""
PROTOCOL = (
    "Protokoll der Besprechung\n**Datum:** 3. Februar 2026\n**Teilnehmer:** Ada, Jürgen\n\nTagesordnung:\n1. Wehr\n"
)


@pytest.mark.parametrize(
    ("name", "text", "doc_type", "tier1"),
    [
        ("a.txt", "Just a note about otters.", "text", {}),
        ("a.md", "# Guide\n\nFrom: here to there\n\nNote: 10:30 is late.", "text", {}),
        ("a.txt", MAIL, "email", {
            "from": "Ada <ada@weir.example>", "to": ["ines@weir.example"], "subject": "Keys",
            "date": "2026-02-03T10:15:00+01:00",
        }),
        ("a.txt", CHAT, "slack", {"channel": "weir", "participants": ["ada", "ines"], "timestamp": "10:32"}),
        ("a.txt", PHONE, "slack", {"participants": ["Ada", "Ines K"], "timestamp": "05/01/26, 10:32"}),
        ("a.txt", HEADED, "slack", {"participants": ["Ada Keeper", "Ines"], "timestamp": "10:32 AM"}),
        ("a.md", NOTES, "meeting", {
            "date": "2026-02-03", "duration": "45 minutes", "platform": "Zoom", "participants": ["Ada", "Ines", "Jürgen"],
        }),
        ("a.txt", PROTOCOL, "meeting", {"date": "3. Februar 2026", "participants": ["Ada", "Jürgen"]}),
        ("x.sh", "source ./env\nrun() {\n  ls\n}\n", "code", {"lang": "shell", "functions": ["run"], "imports": ["./env"]}),
    ],
)  # fmt: skip
def test_the_type_follows_from_name_and_content(name, text, doc_type, tier1):
    assert describe(name, text) == (doc_type, tier1)


@pytest.mark.parametrize(
    ("doc_type", "name", "text", "tier1"),
    [
        ("article", "https://a.example/x", "# Otters\n\nBy Ada Keeper\nPublished: 2026-02-03\n", {
            "title": "Otters", "author": "Ada Keeper", "publishDate": "2026-02-03", "url": "https://a.example/x",
        }),
        ("pdf", "a.pdf", "---\ntitle: Survey\nauthor: Ada\npages: 12\n---\ntext", {"title": "Survey", "author": "Ada"}),
        ("image", "otter.png", "An otter in kelp.", {"mimeType": "image/png"}),
        ("text", "mail.txt", MAIL, {}),
        ("code", "snippet", "def f(): pass", {}),
        ("meeting", "m", "Anything at all", {}),
    ],
)  # fmt: skip
def test_a_type_that_is_given_is_believed(doc_type, name, text, tier1):
    known, told = describe(name, text, doc_type)
    assert known == doc_type
    assert tier1.items() <= told.items()


CODE = {
    "typescript": (
        "import { a } from './a'\nimport {\n  b,\n} from \"b\"\nexport class Weir extends Base {\n  async open(x: number) {\n"
        "    if (x) {\n    }\n  }\n}\nexport const close = async (x) => {\n}\nexport default function main() {}\n"
        "const fs = require('fs')\nexport interface Gate {}\n",
        {"functions": ["open", "close", "main"], "classes": ["Weir", "Gate"], "imports": ["./a", "b", "fs"],
         "exports": ["Weir", "close", "main", "Gate"]},
    ),
    "go": (
        'package weir\n\nimport (\n\t"fmt"\n\tlog "example.org/log"\n)\n\ntype Gate struct {\n}\n\n'
        "func (g *Gate) Open(x int) error {\n\treturn nil\n}\n\nfunc helper() {}\n",
        {"functions": ["Open", "helper"], "classes": ["Gate"], "imports": ["fmt", "example.org/log"], "exports": ["Gate", "Open"]},
    ),
    "rust": (
        "use std::io;\npub struct Gate {}\nimpl Gate {\n    pub fn open(&self) {}\n}\npub async fn run() {}\nfn quiet() {}\n",
        {"functions": ["open", "run", "quiet"], "classes": ["Gate"], "imports": ["std::io"], "exports": ["Gate", "run"]},
    ),
    "java": (
        "import java.util.List;\npublic class Gate {\n    public static List<String> names(int a, int b) {\n"
        "        if (a > b) {\n        }\n        return call(a);\n    }\n}\n",
        {"functions": ["names"], "classes": ["Gate"], "imports": ["java.util.List"], "exports": ["Gate"]},
    ),
    "c": (
        '#include <stdio.h>\n#include "weir.h"\nstruct gate {\n  int x;\n};\nstatic int open_gate(struct gate *g)\n{\n'
        "  while (x) {\n  }\n  return close(g);\n}\n",
        {"functions": ["open_gate"], "classes": ["gate"], "imports": ["stdio.h", "weir.h"]},
    ),
    "ruby": ("require 'set'\nclass Gate\n  def open?\n  end\nend\n", {"functions": ["open?"], "classes": ["Gate"], "imports": ["set"]}),
    "php": ("<?php\nuse App\\Gate;\nfinal class Weir {\n  public function open() {}\n}\n", {"functions": ["open"], "classes": ["Weir"], "imports": ["App\\Gate"]}),
    "kotlin": ("import a.b\ndata class Gate(val x: Int)\nfun Gate.open(): Int {\n}\n", {"functions": ["open"], "classes": ["Gate"], "imports": ["a.b"]}),
    "sql": ("CREATE TABLE IF NOT EXISTS gates (id int);\ncreate or replace function open_gate() returns int\n", {"functions": ["open_gate"], "classes": ["gates"]}),
    "python": ("__all__ = ['a',\n 'b']\nfrom x import y\nasync def a(): ...\n", {"functions": ["a"], "imports": ["x"], "exports": ["a", "b"]}),
}  # fmt: skip


@pytest.mark.parametrize("language", CODE)
def test_declarations_in_code_are_found(language):
    text, tier1 = CODE[language]
    assert outline(text, language)[1] == {"lang": language, **tier1}


@pytest.mark.parametrize("language", sorted({*BY_ENDING.values(), *BY_NAME.values()}))
def test_every_language_can_be_looked_at(language):
    marks, tier1 = outline(CODE["go"][0] + CODE["java"][0] + "x" * 5000, language)
    assert tier1["lang"] == language
    assert [mark.start for mark in marks] == sorted({mark.start for mark in marks})


def test_about_thirty_languages_are_known():
    assert len(set(BY_ENDING.values())) >= 30


def test_names_are_listed_once_and_not_without_end():
    text = "".join(f"def f{number}(): pass\ndef same(): pass\n" for number in range(1000))
    functions = outline(text, "python")[1]["functions"]
    assert len(functions) == len(set(functions)) == 200
