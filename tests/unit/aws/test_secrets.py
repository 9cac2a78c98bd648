import sys
from typing import Any

import pytest

from cragside.adapters.aws.secrets import Secret
from cragside.domain.errors import ConfigurationError, ServiceUnavailable

ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:cragside-token-AbCdEf"


class SecretsManager:
    """Answers with one text after the other; an exception is raised."""

    def __init__(self, *texts: Any) -> None:
        self.texts = list(texts)
        self.asked: list[str] = []

    def get_secret_value(self, SecretId: str) -> dict[str, Any]:  # noqa: N803 (the SDK's name)
        self.asked.append(SecretId)
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return {"SecretString": text} if isinstance(text, str) else {"SecretBinary": text}


class Refused(Exception):
    response = {"Error": {"Code": "AccessDeniedException", "Message": f"not for you: {ARN}"}}  # noqa: RUF012


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def secret(manager: SecretsManager, clock: Clock | None = None) -> Secret:
    return Secret(ARN, connect=lambda: manager, clock=clock or Clock())


def test_it_is_read_at_the_first_use_and_remembered() -> None:
    manager = SecretsManager(" s3cret\n")
    kept = secret(manager, clock := Clock())
    assert manager.asked == []
    clock.now = 1.0
    assert [kept.value(), kept.value()] == ["s3cret", "s3cret"]
    assert manager.asked == [ARN]


def test_a_secret_that_was_exchanged_is_taken_up_within_five_minutes() -> None:
    clock = Clock()
    kept = secret(SecretsManager("old", "new"), clock)
    assert kept.value() == "old"
    clock.now = 299
    assert kept.value() == "old"
    clock.now = 301
    assert kept.value() == "new"


def test_the_old_value_stays_while_the_new_one_cannot_be_read() -> None:
    clock = Clock()
    kept = secret(SecretsManager("old", Refused(), "new"), clock)
    assert kept.value() == "old"
    clock.now = 301
    assert kept.value() == "old"
    clock.now = 307
    assert kept.value() == "new"


@pytest.mark.parametrize("wrong", [Refused(), OSError("no route"), "", "  ", b"bytes"])
def test_without_a_value_nobody_is_let_in(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    kept = secret(SecretsManager(wrong))
    with pytest.raises(ServiceUnavailable) as raised:
        kept.value()
    assert raised.value.component == "secrets"
    assert ARN not in raised.value.message
    assert ARN in caplog.text


def test_one_that_is_out_of_reach_is_not_asked_for_by_every_request() -> None:
    manager = SecretsManager(Refused(), "s3cret")
    kept = secret(manager, clock := Clock())
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            kept.value()
    assert len(manager.asked) == 1
    clock.now = 6
    assert kept.value() == "s3cret"


def test_what_was_forgotten_is_read_anew() -> None:
    kept = secret(SecretsManager("old", "new"))
    assert kept.value() == "old"
    kept.forget()
    assert kept.value() == "new"


def test_neither_its_text_nor_a_log_line_shows_the_value(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    kept = secret(SecretsManager("s3cret", Refused()), clock)
    kept.value()
    clock.now = 301
    kept.value()
    assert "s3cret" not in caplog.text + repr(kept)
    assert "AccessDeniedException" in caplog.text
    assert "not for you" not in caplog.text


def test_without_the_sdk_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigurationError, match=r"cragside\[aws\]"):
        Secret(ARN).value()


def test_the_sdk_reads_a_real_looking_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with moto.mock_aws():
        made = boto3.client("secretsmanager").create_secret(Name="cragside-token", SecretString="s3cret")
        assert Secret(made["ARN"]).value() == "s3cret"
