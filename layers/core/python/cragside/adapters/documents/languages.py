"""Detects the language of source code, and finds declarations, imports and exports line by line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Any

from cragside.adapters.documents.reading import present
from cragside.domain.document import Mark

_LONGEST_LINE = 400
_MOST_MARKS = 20_000

BY_ENDING = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "javascript", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescript",
    ".vue": "vue", ".svelte": "svelte", ".go": "go", ".rs": "rust", ".java": "java", ".kt": "kotlin",
    ".kts": "kotlin", ".scala": "scala", ".groovy": "groovy", ".gradle": "groovy", ".cs": "csharp", ".c": "c",
    ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".m": "objective-c",
    ".swift": "swift", ".dart": "dart", ".php": "php", ".rb": "ruby", ".pl": "perl", ".pm": "perl", ".lua": "lua",
    ".r": "r", ".jl": "julia", ".hs": "haskell", ".ml": "ocaml", ".ex": "elixir", ".exs": "elixir",
    ".erl": "erlang", ".clj": "clojure", ".zig": "zig", ".nim": "nim", ".sh": "shell", ".bash": "shell",
    ".zsh": "shell", ".ps1": "powershell", ".sql": "sql", ".tf": "terraform", ".proto": "protobuf",
    ".graphql": "graphql", ".css": "css", ".scss": "css",
}  # fmt: skip
BY_NAME = {"makefile": "make", "dockerfile": "docker", "jenkinsfile": "groovy", "rakefile": "ruby", "gemfile": "ruby"}
LANGUAGES = frozenset({*BY_ENDING.values(), *BY_NAME.values()})


@dataclass(frozen=True)
class Grammar:
    """Patterns for the beginning of a line. The last matching group is the name."""

    functions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    comment: tuple[str, ...] = ("//", "/*", "*", "@", "#")


_NOT_A_TYPE = r"(?!(?:if|else|for|while|do|switch|case|catch|return|new|throw|await|yield|using|lock|delete|goto)\b)"
_NOT_A_TYPE += r"(?![^(]*\b(?:class|interface|record|object)\b)"
_C_FUNCTION = (
    rf"\s*+{_NOT_A_TYPE}[\w<>\[\],.*&:?~ \t]{{1,160}}?[ \t*&:~](\w{{1,80}}+)\s?\([^;{{}}()]*+\)?"
    r"[^;={}()]*+\{?\s*+$"
)
_MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|abstract|final|sealed|open|data|partial|export|default|declare"
    r"|case|inline|pub|readonly|override|suspend|async|unsafe|const)(?:\([^)]*+\))?\s++)*"
)
_JS = Grammar(
    functions=(
        rf"\s*+{_MODIFIERS}function\s*+\*?\s*+([\w$]++)",
        r"(?:export\s++)?(?:const|let|var)\s++([\w$]++)[^=(]*+=\s*+(?:async\s*+)?(?:function\b|\([^)]*+\)[^=]*+=>|[\w$]++\s*+=>)",
        r"\s++(?!if\b|for\b|while\b|switch\b|catch\b|return\b|function\b|constructor\b)"
        rf"{_MODIFIERS}(?:get\s++|set\s++)?\*?#?([\w$]++)\s*+\([^;(){{}}]*+\)[^;(){{}}=]*+\{{\s*+$",
    ),
    classes=(rf"\s*+{_MODIFIERS}(?:class|interface|enum)\s++([\w$]++)",),
    imports=(
        r"\s*+(?:import|export)\b[^'\"]*+['\"]([^'\"]++)['\"]",
        r"\}\s*+from\s++['\"]([^'\"]++)['\"]",
        r"[^'\"/]*?\brequire\(\s*+['\"]([^'\"]++)['\"]",
    ),
    exports=(
        r"export\s++(?:default\s++)?(?:declare\s++)?(?:abstract\s++)?(?:async\s++)?"
        r"(?:function\s*+\*?|class|const|let|var|interface|type|enum)\s*+([\w$]++)",
        r"(?:module\.)?exports\.([\w$]++)\s*+=",
    ),
)
_JVM = Grammar(
    functions=(rf"\s*+{_MODIFIERS}(?:fun|def)\s++(?:<[^>]*+>\s*+)?(?:\w++\.)*(\w++)", _C_FUNCTION),
    classes=(
        rf"\s*+{_MODIFIERS}(?:class|interface|enum\s++class|enum|record|object|trait|struct|annotation\s++class)\s++(\w++)",
    ),
    imports=(r"\s*+(?:import|using)\s++(?:static\s++)?([\w.*_]++)",),
    exports=(r"public\s++(?:[\w<>\[\]]++\s++)*?(?:class|interface|enum|record|struct)\s++(\w++)",),
)
_C = Grammar(
    functions=(_C_FUNCTION,),
    classes=(
        r"\s*+(?:typedef\s++)?(?:class|struct|union|enum(?:\s++class)?|@interface|@implementation|@protocol)\s++(\w++)(?![^{]*+;)",
    ),
    imports=(r"\s*+#\s*+(?:include|import)\s*+[<\"]([^>\"]++)",),
    comment=("//", "/*", "*"),
)
_SHELL = Grammar(
    functions=(r"\s*+function\s++([\w:-]++)", r"\s*+([\w:-]++)\s*+\(\)"),
    imports=(r"\s*+(?:source|\.)\s++([^\s;]++)",),
    comment=("#",),
)
_GRAMMARS = {
    "python": Grammar(
        functions=(r"\s*+(?:async\s++)?def\s++(\w++)",),
        classes=(r"\s*+class\s++(\w++)",),
        imports=(r"\s*+from\s++([\w.]++)\s++import\b", r"\s*+import\s++([\w.]++)"),
        comment=("#", "@", ")"),
    ),
    "javascript": _JS,
    "typescript": _JS,
    "vue": _JS,
    "svelte": _JS,
    "java": _JVM,
    "kotlin": _JVM,
    "scala": _JVM,
    "groovy": _JVM,
    "csharp": _JVM,
    "dart": _JVM,
    "c": _C,
    "cpp": _C,
    "objective-c": _C,
    "go": Grammar(
        functions=(r"func\s++(?:\([^)]*+\)\s*+)?(\w++)",),
        classes=(r"type\s++(\w++)(?:\[[^\]]*+\])?\s++(?:struct|interface)\b",),
        imports=(r"import\s++(?:[\w.]++\s++)?\"([^\"]++)\"", r"\t(?:[\w.]++\s++)?\"([^\"\s]++)\"$"),
        exports=(r"func\s++(?:\([^)]*+\)\s*+)?([A-Z]\w*+)", r"type\s++([A-Z]\w*+)"),
    ),
    "rust": Grammar(
        functions=(rf"\s*+{_MODIFIERS}(?:extern\s++\"[^\"]*+\"\s++)?fn\s++(\w++)",),
        classes=(
            rf"\s*+{_MODIFIERS}(?:struct|enum|trait|union)\s++(\w++)",
            r"impl(?:<[^>]*+>)?\s++(?:[\w:<>]++\s++for\s++)?(\w++)",
        ),
        imports=(r"\s*+(?:pub\s++)?use\s++([^;{\s]++)", r"\s*+extern\s++crate\s++(\w++)"),
        exports=(r"pub\s++(?:async\s++|unsafe\s++|const\s++)*(?:fn|struct|enum|trait|mod|type|static)\s++(\w++)",),
        comment=("//", "/*", "*", "#"),
    ),
    "swift": Grammar(
        functions=(rf"\s*+{_MODIFIERS}func\s++(\w++)",),
        classes=(rf"\s*+{_MODIFIERS}(?:class|struct|enum|protocol|extension|actor)\s++(\w++)",),
        imports=(r"import\s++(\w++)",),
        exports=(r"(?:public|open)\s++(?:final\s++)?(?:class|struct|enum|protocol|func)\s++(\w++)",),
    ),
    "php": Grammar(
        functions=(rf"\s*+{_MODIFIERS}function\s++&?(\w++)",),
        classes=(rf"\s*+{_MODIFIERS}(?:class|interface|trait|enum)\s++(\w++)",),
        imports=(r"use\s++([\w\\]++)", r"\s*+(?:require|include)(?:_once)?\s*+\(?['\"]([^'\"]++)"),
    ),
    "ruby": Grammar(
        functions=(r"\s*+def\s++(?:self\.)?([\w?!=]++)",),
        classes=(r"\s*+(?:class|module)\s++([\w:]++)",),
        imports=(r"\s*+require(?:_relative)?\s++['\"]([^'\"]++)",),
        comment=("#", "end"),
    ),
    "perl": Grammar(
        functions=(r"\s*+sub\s++(\w++)",),
        classes=(r"package\s++([\w:]++)",),
        imports=(r"\s*+(?:use|require)\s++([\w:]++)",),
        comment=("#",),
    ),
    "lua": Grammar(
        functions=(r"\s*+(?:local\s++)?function\s++([\w.:]++)",),
        imports=(r"[^'\"]*?\brequire\s*+\(?\s*+['\"]([^'\"]++)",),
        comment=("--", "end"),
    ),
    "r": Grammar(
        functions=(r"\s*+([\w.]++)\s*+(?:<-|=)\s*+function\b",),
        imports=(r"\s*+(?:library|require)\(\s*+['\"]?([\w.]++)",),
        comment=("#",),
    ),
    "julia": Grammar(
        functions=(r"\s*+function\s++([\w.!]++)",),
        classes=(r"\s*+(?:mutable\s++)?(?:struct|module)\s++(\w++)",),
        imports=(r"\s*+(?:using|import)\s++([\w.]++)",),
        exports=(r"export\s++(\w++)",),
        comment=("#", "end"),
    ),
    "haskell": Grammar(
        functions=(r"([a-z]\w*+'*+)\s*+::",),
        classes=(r"(?:data|newtype|class|type)\s++(?:[^=]*+=>\s*+)?([A-Z]\w*+)",),
        imports=(r"import\s++(?:qualified\s++)?([\w.]++)",),
        comment=("--", "{-"),
    ),
    "ocaml": Grammar(
        functions=(r"let\s++(?:rec\s++)?(\w++)\s++[\w(~]",),
        classes=(r"(?:module|type|class)\s++(\w++)",),
        imports=(r"open\s++([\w.]++)",),
        comment=("(*",),
    ),
    "elixir": Grammar(
        functions=(r"\s*+defp?\s++([\w?!]++)",),
        classes=(r"\s*+(?:defmodule|defprotocol)\s++([\w.]++)",),
        imports=(r"\s*+(?:import|alias|use|require)\s++([\w.]++)",),
        exports=(r"\s*+def\s++([\w?!]++)",),
        comment=("#", "@", "end"),
    ),
    "erlang": Grammar(
        functions=(r"([a-z]\w*+)\([^)]*+\)[^.]*+->",),
        classes=(r"-module\((\w++)",),
        imports=(r"-(?:include|import)(?:_lib)?\(\"?([^\",)]++)",),
        comment=("%",),
    ),
    "clojure": Grammar(
        functions=(r"\(defn-?\s++(?:\^\S++\s++)?([\w?!*<>=+-]++)",),
        classes=(r"\((?:defprotocol|defrecord|deftype|ns)\s++([\w.-]++)",),
        imports=(r"[^\[]*?\(:(?:require|use|import)\s++\[?([\w.-]++)",),
        comment=(";",),
    ),
    "zig": Grammar(
        functions=(r"\s*+(?:pub\s++|export\s++|inline\s++)*fn\s++(\w++)",),
        classes=(r"\s*+(?:pub\s++)?const\s++(\w++)\s*+=\s*+(?:packed\s++|extern\s++)?(?:struct|enum|union)\b",),
        imports=(r"[^@]*+@import\(\"([^\"]++)",),
        exports=(r"pub\s++(?:fn|const)\s++(\w++)",),
        comment=("//",),
    ),
    "nim": Grammar(
        functions=(r"\s*+(?:proc|func|method|iterator|template|macro)\s++(\w++)",),
        classes=(r"\s++(\w++)\*?\s*+=\s*+(?:ref\s++)?object\b",),
        imports=(r"(?:import|from|include)\s++([\w/]++)",),
        exports=(r"(?:proc|func|method)\s++(\w++)\*",),
        comment=("#",),
    ),
    "shell": _SHELL,
    "powershell": Grammar(
        functions=(r"\s*+(?i:function)\s++([\w:-]++)",),
        classes=(r"\s*+(?i:class)\s++(\w++)",),
        imports=(r"\s*+(?i:import-module)\s++(\S++)",),
        comment=("#",),
    ),
    "sql": Grammar(
        functions=(r"\s*+(?i:create\s++(?:or\s++replace\s++)?(?:function|procedure|trigger)\s++)([\w.\"]++)",),
        classes=(
            r"\s*+(?i:create\s++(?:temp(?:orary)?\s++)?(?:table|view|type)\s++(?:if\s++not\s++exists\s++)?)([\w.\"]++)",
        ),
        comment=("--",),
    ),
    "terraform": Grammar(
        classes=(r"(?:resource|module|data|variable|output|provider)\s++\"([^\"]++)\"",), comment=("#", "//")
    ),
    "protobuf": Grammar(
        functions=(r"\s*+rpc\s++(\w++)",),
        classes=(r"\s*+(?:message|service|enum)\s++(\w++)",),
        imports=(r"import\s++\"([^\"]++)",),
    ),
    "graphql": Grammar(classes=(r"(?:type|interface|enum|input|union|scalar)\s++(\w++)",), comment=("#",)),
    "css": Grammar(imports=(r"@(?:import|use)\s++(?:url\()?['\"]([^'\"]++)",)),
}
_ALL = re.compile(r"^__all__\s*+=\s*+[\[(]([^\])]{0,20000}+)", re.MULTILINE)
_KINDS = ("classes", "functions", "imports", "exports")


def language_of(name: str) -> str | None:
    """Return the language of a file with this name; None if it is not source code."""
    path = PurePath(name)
    return BY_ENDING.get(path.suffix.lower()) or BY_NAME.get(path.name.lower())


def outline(text: str, language: str) -> tuple[tuple[Mark, ...], dict[str, Any]]:
    """Marks at functions and classes ("Class > method"), and tier 1: lang, functions, classes, ..."""
    patterns = _patterns(language)
    comments = _GRAMMARS.get(language, Grammar()).comment
    marks: list[Mark] = []
    found: dict[str, list[str]] = {kind: [] for kind in ("functions", "classes", "imports", "exports")}
    enclosing: list[tuple[int, str]] = []
    for start, line in _lines(text):
        names = {kind: name for kind in _KINDS if (name := _name(line, patterns[kind]))}
        for kind, name in names.items():
            found[kind].append(name)
        stripped = line.lstrip()
        declared = names.get("classes") or names.get("functions")
        if not stripped or (not declared and stripped.startswith((*comments, "}", ")", "]", "{"))):
            continue
        indent = len(line) - len(stripped)
        left = bool(enclosing) and enclosing[-1][0] >= indent
        while enclosing and enclosing[-1][0] >= indent:
            enclosing.pop()
        if declared:
            enclosing.append((indent, declared))
        if (declared or left) and len(marks) < _MOST_MARKS:
            marks.append(Mark(start, section=" > ".join(name for _, name in enclosing)))
    if language == "python" and (listed := _ALL.search(text)):
        found["exports"] = re.findall(r"['\"](\w++)['\"]", listed[1])
    return tuple(marks), present({"lang": language, **found})


@cache
def _patterns(language: str) -> dict[str, tuple[re.Pattern[str], ...]]:
    grammar = _GRAMMARS.get(language, Grammar())
    return {kind: tuple(map(re.compile, getattr(grammar, kind))) for kind in _KINDS}


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their starts, without overlong ones, which are generated and slow to match."""
    start = 0
    for line in text.splitlines(keepends=True):
        if len(line) <= _LONGEST_LINE:
            yield start, line.rstrip()
        start += len(line)


def _name(line: str, patterns: tuple[re.Pattern[str], ...]) -> str | None:
    for pattern in patterns:
        if (match := pattern.match(line)) and match.lastindex:
            return str(match[match.lastindex]).strip('"')
    return None
