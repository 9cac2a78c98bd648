"""Reading what `GET /metrics` answers."""

from prometheus_client.parser import text_string_to_metric_families

Counted = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: bytes) -> Counted:
    """The samples by their names and labels."""
    families = text_string_to_metric_families(text.decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def of(counted: Counted, name: str, **labels: str) -> float | None:
    """A sample's value, None if there is none."""
    return counted.get((name, frozenset(labels.items())))
