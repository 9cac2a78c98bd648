"""Every regular expression of the package, how it is used, and texts that are made to keep it busy."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

import cragside
from cragside.adapters.documents.languages import BY_ENDING, _patterns
from cragside.domain.neutral import SPEAKERS, _label
from cragside.domain.query import _pattern

_USES = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
# These import the program that they run in, and have no pattern.
_WITHIN_ITS_HOST = ("cragside.plugins.smart_proxy_agent", "cragside.plugins.litellm", "cragside.plugins.llama_index")
# Some of the characters that a class stands for.
_SAMPLES = "a \nA0_.-\"'<>[](){}#*:;,!?=/\\|@&+\t~`\u00e9\u3002\u200b\x00"

# Patterns that a function makes of its arguments, by module and function, with the ways it applies them. The test fails
# when such a function is missing here.
MADE: dict[tuple[str, str], tuple[tuple[str, ...], Callable[[], Iterable[re.Pattern[Any]]]]] = {
    ("cragside.domain.query", "_pattern"): (("match",), lambda: [_pattern("/rag")]),
    ("cragside.domain.neutral", "_label"): (("finditer",), lambda: [_label(SPEAKERS)]),
    ("cragside.store.library", "_known"): (
        ("fullmatch",),
        lambda: [re.compile(r"a \(\d+\)\.txt")],
    ),
    ("cragside.adapters.documents.texts", "_field"): ((), list),  # the module holds what it makes
    ("cragside.adapters.documents.languages", "_patterns"): (
        ("match",),
        lambda: [
            pattern
            for language in sorted(set(BY_ENDING.values()))
            for kind in _patterns(language).values()
            for pattern in kind
        ],
    ),
}


@dataclass(frozen=True)
class Expression:
    """A pattern and the methods by which the package applies it."""

    place: str
    pattern: re.Pattern[Any]
    uses: tuple[str, ...]


def modules() -> Iterator[ModuleType]:
    """The modules that make regular expressions, or hold some."""
    for found in pkgutil.walk_packages(cragside.__path__, "cragside."):
        if found.name not in _WITHIN_ITS_HOST:
            module = importlib.import_module(found.name)
            if "re" in vars(module) or any(map(list, map(_patterns_in, vars(module).values()))):
                yield module


def expressions() -> list[Expression]:
    """Each pattern once: those that modules hold, and those in calls such as re.sub(r"...", ...)."""
    found: dict[tuple[Any, int], Expression] = {}
    for module in modules():
        for expression in (*_held(module), *_called(module)):
            found.setdefault((expression.pattern.pattern, expression.pattern.flags), expression)
    return list(found.values())


def _held(module: ModuleType) -> Iterator[Expression]:
    held = [(name, patterns) for name, value in vars(module).items() if (patterns := list(_patterns_in(value)))]
    uses = _uses(_nodes(module)) if held else {}
    for name, patterns in held:
        for number, pattern in enumerate(patterns):
            yield Expression(f"{module.__name__}.{name}{number or ''}", pattern, uses.get(name, _USES[:3]))


@lru_cache(maxsize=1)
def _nodes(module: ModuleType) -> list[ast.AST]:
    """The module's source."""
    return list(ast.walk(ast.parse(Path(str(module.__file__)).read_text())))


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from _patterns_in((*value, *value.values()))
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _patterns_in(one)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _patterns_in([getattr(value, field.name, None) for field in fields(value)])


def _uses(nodes: list[ast.AST]) -> dict[str, tuple[str, ...]]:
    """The methods that are called on each name; a name that is handed on may be used in every way."""
    called: dict[str, set[str]] = {}
    methods = {id(node.value): node for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            attribute = methods.get(id(node))
            ways = {attribute.attr} & set(_USES) if attribute else set(_USES[:3])
            called.setdefault(node.id, set()).update(ways)
    return {name: tuple(sorted(ways)) for name, ways in called.items() if ways}


def _called(module: ModuleType) -> Iterator[Expression]:
    for call in _nodes(module):
        method = _method_of_re(call)
        if not method or not isinstance(call, ast.Call):
            continue
        place = f"{module.__name__}:{call.lineno}"
        try:
            arguments = [_evaluated(one, module) for one in (call.args[0], *_flags(call, method))]
            pattern = re.compile(*arguments)
        except NameError:
            function = _function_around(call, _nodes(module))
            if not function:  # the module holds what it makes in a loop
                continue
            assert (module.__name__, function) in MADE, f"{place}: enter the patterns that {function} makes into MADE"
            uses, make = MADE[module.__name__, function]
            yield from (Expression(f"{place}-{number}", one, uses) for number, one in enumerate(make()))
        else:
            yield Expression(place, pattern, _USES[:3] if method == "compile" else (method,))


def _function_around(call: ast.AST, nodes: list[ast.AST]) -> str | None:
    """The name of the innermost function."""
    functions = (node for node in reversed(nodes) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return next((function.name for function in functions if any(inner is call for inner in ast.walk(function))), None)


def _method_of_re(call: ast.AST) -> str | None:
    """Compile, sub and so on; also where re.compile is handed to map."""
    if isinstance(call, ast.Call):
        for one in (call.func, *call.args):
            of_re = isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "re"
            if of_re and one.attr in (*_USES, "compile"):
                return one.attr
    return None


def _flags(call: ast.Call, method: str) -> list[ast.expr]:
    if method == "compile" and len(call.args) > 1:
        return [call.args[1]]
    return [word.value for word in call.keywords if word.arg == "flags"]


def _evaluated(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), vars(module))


def apply(expression: Expression, text: str) -> None:
    """Every method that the package calls."""
    given = text.encode("utf-8", "surrogatepass") if isinstance(expression.pattern.pattern, bytes) else text
    for use in expression.uses:
        if use in ("sub", "subn"):
            getattr(expression.pattern, use)(given[:0], given)
        elif use == "finditer":
            for _ in expression.pattern.finditer(given):
                pass
        else:
            getattr(expression.pattern, use)(given)


class Hostile(NamedTuple):
    """A text of any length."""

    before: str
    repeated: str
    after: str

    def __call__(self, length: int) -> str:
        return f"{self.before}{self.repeated * (length // len(self.repeated))}{self.after}"


def hostile_texts(pattern: re.Pattern[Any]) -> list[Hostile]:
    """Beginnings of a match over and over, each repeated part at great length, and an end that does not match."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    tree = _parser.parse(source, flags)
    shapes = {shape: None for prefix, pump in _shapes(tree, "") for shape in ((prefix, pump), ("", prefix + pump))}
    ends = (("", "\x01"), ("x", "\n\x01"))
    return [Hostile(before + prefix, pump, after) for prefix, pump in shapes for before, after in ends]


def _shapes(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """Return each repeated part of an expression with the text before it."""
    for operation, argument in tree:
        if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, inner = argument
            if most > 1:
                yield from ((before, pump) for pump in _examples(inner))
            yield from _shapes(inner, before)
        elif operation is sre.SUBPATTERN:
            yield from _shapes(argument[3], before)
        elif operation is sre.ATOMIC_GROUP:
            yield from _shapes(argument, before)
        elif operation is sre.BRANCH:
            for branch in argument[1]:
                yield from _shapes(branch, before)
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _shapes(argument[1], before)
        before += next(iter(_examples([(operation, argument)])), "")
    yield before, before or "a"


def _examples(tree: Any) -> list[str]:
    """Short texts that the part matches: one for each branch and for some characters of each class."""
    texts = [""]
    for operation, argument in tree:
        pieces = _pieces(operation, argument) or [""]
        texts = [text + piece for text, piece in product(texts[:3], pieces[:4])][:6]
    return [text for text in texts if text]


def _pieces(operation: Any, argument: Any) -> list[str]:
    if operation is sre.LITERAL:
        return [chr(argument)]
    if operation in (sre.NOT_LITERAL, sre.IN, sre.ANY, sre.CATEGORY):
        return _characters(operation, argument)
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        least, _, inner = argument
        return [text * max(1, min(least, 50)) for text in _examples(inner)]
    if operation is sre.SUBPATTERN:
        return _examples(argument[3])
    if operation is sre.ATOMIC_GROUP:
        return _examples(argument)
    if operation is sre.BRANCH:
        return [text for branch in argument[1] for text in _examples(branch)[:2]]
    return []


def _characters(operation: Any, argument: Any) -> list[str]:
    if operation is sre.ANY:
        return ["a", " "]
    if operation is sre.NOT_LITERAL:
        return [one for one in "a <" if ord(one) != argument]
    parts = [(operation, argument)] if operation is sre.CATEGORY else argument
    negated = parts[0][0] is sre.NEGATE
    chosen = [one for one in _SAMPLES if any(map(_meets(one), parts)) != negated]
    if not negated:
        chosen += [
            chr(value if kind is sre.LITERAL else value[0]) for kind, value in parts if kind in (sre.LITERAL, sre.RANGE)
        ]
    return list(dict.fromkeys(chosen))


def _meets(character: str) -> Callable[[Any], bool]:
    def met(part: Any) -> bool:
        kind, value = part
        if kind is sre.LITERAL:
            return ord(character) == value
        if kind is sre.RANGE:
            return bool(value[0] <= ord(character) <= value[1])
        if kind is sre.CATEGORY:
            return re.match(_CATEGORIES[value], character) is not None
        return False

    return met


_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
