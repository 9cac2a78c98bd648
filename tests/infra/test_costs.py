"""The figures of docs/costs.md: its prices, multiplied with what the templates of each shape have."""

import json
import re
from collections import Counter
from typing import Any

import pytest
from synthesis import ROOT, SHAPES, Synthesised, Synthesiser

from infra.checks import checked
from infra.config import named

pytestmark = pytest.mark.infra

PAGE = (ROOT / "docs/costs.md").read_text()
QUESTIONS = (0, 10_000, 100_000, 1_000_000, 10_000_000)
HOURS = 730
# What the page says under "What is assumed".
ENVIRONMENTS, COLD, WEB, POLLERS = 2, 0.01, 0.2, 5
ANSWER_BYTES, LINE_BYTES, ACCESS_BYTES, FLOW_BYTES = 8000, 2500, 500, 1000
METRICS = {"Enrich": 10, "Index": 3}
MILLISECONDS = {"embedded": 15, "ollama": 343, "web": 820 * 1.03, "start": 437 + 920}
SHAPES_BY_NAME = {"dev": ("baked", "generations", "managed"), "prod": ("baked", "generations", "private", "managed")}
ROWS = [(name, shape) for name, shapes in SHAPES_BY_NAME.items() for shape in shapes]


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


PRICES = {name: float(usd) for name, usd, *_ in rows("Prices")}


def resources(stack: Synthesised) -> list[dict[str, Any]]:
    files = stack.file.parent.glob("*.template.json")
    return [each for file in files for each in json.loads(file.read_text()).get("Resources", {}).values()]


def fixed(stack: Synthesised) -> float:
    """The cost of a month without a question."""
    usd = 0.0
    for each in resources(stack):
        said = each.get("Properties", {})
        match each["Type"]:
            case "AWS::CloudWatch::Alarm":
                metrics = [one for one in said.get("Metrics", [{"MetricStat": {}}]) if "MetricStat" in one]
                usd += PRICES["alarm, a metric"] * len(metrics)
            case "AWS::CloudWatch::Dashboard":
                usd += PRICES["dashboard"]
            case "AWS::SecretsManager::Secret":
                usd += PRICES["secret"] + PRICES["secret, a million reads"] * ENVIRONMENTS * HOURS * 12 / 1e6
            case "AWS::KMS::Key":
                usd += PRICES["key"]
            case "AWS::EC2::VPCEndpoint" if said["VpcEndpointType"] == "Interface":
                usd += PRICES["interface endpoint, an hour and zone"] * HOURS * len(said["SubnetIds"])
            case "AWS::Lambda::EventSourceMapping":
                usd += PRICES["FIFO queue, a million requests"] * POLLERS * HOURS * 180 / 1e6
            case "AWS::Lambda::Function":
                variables = said["Environment"]["Variables"]
                if "POWERTOOLS_METRICS_DISABLED" not in variables:
                    usd += PRICES["metric"] * METRICS["Enrich" if "RAG_MAX_BODY_BYTES" in variables else "Index"]
                if "SnapStart" in said:
                    usd += PRICES["SnapStart cache, a GB-second"] * said["MemorySize"] / 1024 * HOURS * 3600
    return usd


def variable(stack: Synthesised, questions: float) -> float:
    """The cost that so many questions a month add, indexing aside."""
    function = stack.properties("AWS::Lambda::Function")
    variables, gb = function["Environment"]["Variables"], function["MemorySize"] / 1024
    kinds = Counter(each["Type"] for each in resources(stack))
    local = MILLISECONDS["ollama" if "OLLAMA_BASE_URL" in variables else "embedded"]
    web = MILLISECONDS["web"] if "SEARXNG_HOST" in variables else local
    snap = "SnapStart" in function
    milliseconds = local + WEB * (web - local) + (0 if snap else COLD * MILLISECONDS["start"])
    lines = LINE_BYTES + ACCESS_BYTES + (FLOW_BYTES if kinds["AWS::EC2::FlowLog"] else 0)
    days = next(iter(stack.resources("AWS::Logs::LogGroup").values()))["Properties"]["RetentionInDays"]
    traced = min(questions, HOURS * 3600) + 0.05 * max(0.0, questions - HOURS * 3600)
    rest = kinds["AWS::ApiGateway::RestApi"]
    return sum(
        (
            PRICES["REST API, a million requests" if rest else "HTTP API, a million requests"] * questions / 1e6,
            PRICES["function, a million requests"] * questions / 1e6,
            PRICES["function, a GB-second"] * questions * milliseconds / 1000 * gb,
            PRICES["SnapStart restore, a GB"] * questions * COLD * gb if snap else 0,
            PRICES["answers that leave AWS, a GB"] * questions * ANSWER_BYTES / 1e9,
            PRICES["logs, a GB written"] * questions * lines / 1e9,
            PRICES["logs, a GB kept a month"] * questions * lines / 1e9 * days / 30.4,
            PRICES["X-Ray, a million traces"] * traced / 1e6 if function.get("TracingConfig") else 0,
        )
    )


@pytest.mark.parametrize(("name", "shape"), ROWS, ids="-".join)
def test_the_page_has_what_the_templates_cost(name: str, shape: str, synthesise: Synthesiser) -> None:
    knowledge = {"knowledge": "none"} if name == "prod" else {}
    stack = synthesise(checked(named(name).changed(**{**knowledge, **SHAPES[shape]})))
    figures = [f"{fixed(stack) + variable(stack, each):,.2f}" for each in QUESTIONS]
    assert [f"{name}, {shape}", *figures] in rows("A month")


def test_the_page_has_what_bedrocks_knowledge_base_costs() -> None:
    stored, asked = PRICES["Bedrock knowledge base, a GB-month"], PRICES["Bedrock knowledge base, a question"]
    figures = [f"{stored + asked * each:,.2f}" for each in QUESTIONS]
    assert ["Bedrock managed knowledge base, 1 GB", *figures] in rows("A month")


def test_the_smallest_shape_costs_less_than_a_dollar(synthesise: Synthesiser) -> None:
    assert fixed(synthesise(named("dev"))) < 1
    nothing = synthesise(named("dev").changed(observability="none", token_parameter="/cragside/dev/token"))
    assert fixed(nothing) == 0
    nothing_else = {"observability": "none", "token_parameter": "/cragside/dev/token"}
    assert f"{fixed(synthesise(named('dev').changed(knowledge={'generations': 10}, **nothing_else))):.2f}" == "0.33"


def test_each_price_is_used_and_names_its_page() -> None:
    source = (ROOT / "tests/infra/test_costs.py").read_text()
    assert all(f'"{name}"' in source for name in PRICES)
    assert all(re.fullmatch(r"https://aws\.amazon\.com/\S+/pricing/\S*", page) for *_, page in rows("Prices"))
