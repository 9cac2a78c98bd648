import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cragside.adapters.aws.secrets import Secret, Secrets, UnfitSecret, api_tokens
from cragside.databases.renewable import Unreadable
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.entrypoints.access import Keyring
from tests.clocks import MovedClock

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


def secret(manager: SecretsManager, clock: MovedClock | None = None) -> Secret[str]:
    return Secrets(lambda _: manager, clock=clock or MovedClock()).secret(ARN, setting="X_SECRET", parse=str)


def test_the_secret_is_read_at_first_use_and_cached() -> None:
    manager = SecretsManager(" s3cret\n")
    kept = secret(manager, clock := MovedClock())
    assert manager.asked == []
    clock.move_to(1.0)
    assert [kept.value(), kept.value()] == ["s3cret", "s3cret"]
    assert manager.asked == [ARN]


def test_a_secret_that_was_exchanged_is_taken_up_within_five_minutes() -> None:
    clock = MovedClock()
    kept = secret(SecretsManager("old", "new"), clock)
    assert kept.value() == "old"
    clock.move_to(299)
    assert kept.value() == "old"
    clock.move_to(301)
    assert kept.value() == "new"


def test_the_old_value_stays_while_the_new_one_cannot_be_read() -> None:
    clock = MovedClock()
    kept = secret(SecretsManager("old", Refused(), "new"), clock)
    assert kept.value() == "old"
    clock.move_to(301)
    assert kept.value() == "old"
    clock.move_to(307)
    assert kept.value() == "new"


@pytest.mark.parametrize("wrong", [Refused(), OSError("no route"), "", "  ", b"bytes"])
def test_an_unusable_secret_is_an_outage(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    kept = secret(SecretsManager(wrong))
    with pytest.raises(ServiceUnavailable) as raised:
        kept.value()
    assert raised.value.component == "secrets"
    assert ARN not in raised.value.message
    assert ARN in caplog.text


def test_an_unreachable_secret_is_not_requested_each_time() -> None:
    manager = SecretsManager(Refused(), "s3cret")
    kept = secret(manager, clock := MovedClock())
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            kept.value()
    assert len(manager.asked) == 1
    clock.move_to(6)
    assert kept.value() == "s3cret"


def test_a_forgotten_secret_is_read_again() -> None:
    kept = secret(SecretsManager("old", "new"))
    assert kept.value() == "old"
    kept.forget()
    assert kept.value() == "new"


def test_neither_its_text_nor_a_log_line_shows_the_value(caplog: pytest.LogCaptureFixture) -> None:
    clock = MovedClock()
    kept = secret(SecretsManager("s3cret", Refused()), clock)
    kept.value()
    clock.move_to(301)
    kept.value()
    assert "s3cret" not in caplog.text + repr(kept)
    assert "AccessDeniedException" in caplog.text
    assert "not for you" not in caplog.text


def test_without_the_sdk_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigurationError, match=r"the extra `aws`"):
        Secrets().secret(ARN, setting="X_SECRET", parse=str).value()


@pytest.fixture
def boto3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """AWS' SDK before an emulator."""
    sdk, moto = pytest.importorskip("boto3"), pytest.importorskip("moto")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with moto.mock_aws():
        yield sdk


def test_the_sdk_reads_a_real_looking_secret(boto3: Any) -> None:
    made = boto3.client("secretsmanager").create_secret(Name="cragside-token", SecretString="s3cret")
    assert Secrets().secret(made["ARN"], setting="X_SECRET", parse=str).value() == "s3cret"


def test_a_parameter_of_systems_manager_is_a_secret_too(boto3: Any) -> None:
    ssm = boto3.client("ssm")
    ssm.put_parameter(Name="/cragside/token", Value="s3cret", Type="SecureString")
    arn = ssm.get_parameter(Name="/cragside/token")["Parameter"]["ARN"]
    secrets = Secrets()
    assert secrets.secret(arn, setting="X_SECRET", parse=api_tokens).value() == ("s3cret",)
    missing = secrets.secret(f"{arn}-missing", setting="X_SECRET", parse=str)
    with pytest.raises(ServiceUnavailable, match="X_SECRET"):
        missing.value()


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("failure", [Refused(), OSError("no route"), "", b"bytes"])
def test_while_the_store_is_down_a_token_is_trusted_for_fifteen_minutes_at_most(failure: Any) -> None:
    kept = secret(SecretsManager("old", *[failure] * 10, "new"), clock := MovedClock())
    assert kept.value() == "old"
    for now in (301, 600, 899):
        clock.move_to(now)
        assert kept.value() == "old"
    for now in (901, 1000, 5000, 100_000):
        clock.move_to(now)
        with pytest.raises(ServiceUnavailable) as raised:
            kept.value()
        assert raised.value.retryable
    for _ in range(10):
        clock.move(6)
        try:
            assert kept.value() == "new"
            break
        except ServiceUnavailable:
            continue
    assert kept.value() == "new"


@pytest.mark.attack("hostile tokens")
def test_a_function_frozen_for_long_does_not_trust_its_cached_secret() -> None:
    kept = secret(SecretsManager("old", Refused()), clock := MovedClock())
    assert kept.value() == "old"
    clock.move_to(86_400)
    with pytest.raises(ServiceUnavailable):
        kept.value()


@pytest.mark.attack("hostile tokens")
def test_a_clock_that_was_set_back_makes_no_token_live_longer() -> None:
    kept = secret(SecretsManager("old", Refused(), "new"), clock := MovedClock())
    clock.move_to(1_000_000.0)
    assert kept.value() == "old"
    clock.move_to(10.0)
    with pytest.raises(ServiceUnavailable):
        kept.value()
    clock.move_to(16.0)
    assert kept.value() == "new"


async def test_the_secret_is_refreshed_in_the_background_without_delaying_requests() -> None:
    class Slow(SecretsManager):
        released = threading.Event()

        def get_secret_value(self, SecretId: str) -> dict[str, Any]:  # noqa: N803 (the SDK's name)
            if self.asked:
                assert self.released.wait(10)
            return super().get_secret_value(SecretId)

    manager = Slow("old", "new")
    kept = secret(manager, clock := MovedClock())
    async with asyncio.timeout(10), kept.keep_fresh():
        assert kept.value() == "old"
        await asyncio.sleep(0)
        clock.move_to(400)
        await asyncio.sleep(0.01)
        assert kept.value() == "old", "the read is under way, and nobody waits for it"
        manager.released.set()
        while kept.value() != "new":
            await asyncio.sleep(0.001)
        clock.move_to(2000)
        with pytest.raises(ServiceUnavailable):
            kept.value()


async def test_the_background_does_not_begin_without_a_value() -> None:
    with pytest.raises(ServiceUnavailable):
        async with secret(SecretsManager(Refused())).keep_fresh():
            pytest.fail("it serves")


async def test_a_refused_value_is_read_again_at_once_but_not_with_each_refusal() -> None:
    manager = SecretsManager("old", "old", "new")
    kept = secret(manager, clock := MovedClock())
    old = await kept.current()
    assert await kept.after_refusal(old) is None, "the server may have been told before the secret"
    assert await kept.after_refusal(old) is None
    assert len(manager.asked) == 2
    clock.move_to(6)
    assert [await kept.after_refusal(old), await kept.current()] == ["new", "new"]
    assert await kept.after_refusal(old) == "new", "another connection has asked meanwhile"
    assert len(manager.asked) == 3


async def test_a_connection_does_not_wait_for_a_store_that_hangs_while_it_has_a_trusted_value() -> None:
    released = threading.Event()

    class Hanging(SecretsManager):
        def get_secret_value(self, SecretId: str) -> dict[str, Any]:  # noqa: N803 (the SDK's name)
            if self.asked:
                released.wait(60)
            return super().get_secret_value(SecretId)

    kept = secret(Hanging("old", Refused()), clock := MovedClock())
    try:
        assert await kept.current() == "old"
        clock.move_to(301)
        async with asyncio.timeout(30):
            assert await kept.current() == "old"
        clock.move_to(901)
    finally:
        released.set()
    with pytest.raises(Unreadable, match="X_SECRET") as raised:
        await kept.current()
    assert ARN not in str(raised.value)


def test_a_text_that_cannot_be_used_leaves_the_old_value_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    manager = SecretsManager("one", "a b", "two")
    secrets = Secrets(lambda _: manager, clock=(clock := MovedClock()))
    kept = secrets.secret(ARN, setting="RAG_API_TOKEN_SECRET", parse=api_tokens)
    assert (kept.value(), secrets.unreadable) == (("one",), False)
    clock.move_to(301)
    assert (kept.value(), secrets.unreadable) == (("one",), True)
    assert "RAG_API_TOKEN_SECRET could not be read: a token has a character" in caplog.text
    clock.move_to(307)
    assert (kept.value(), secrets.unreadable) == (("two",), False)


@pytest.mark.parametrize("text", ["old\nnew", " old \r\n\r\n\tnew\n", "old\nnew\nold\n"])
def test_two_tokens_are_a_line_each(text: str) -> None:
    assert api_tokens(text) == ("old", "new")


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n",
        " \n\t\n",
        "\u2028",
        "\x1c",
        "a b",
        "a\n\u200b",
        '{"token": "a"}',
        "a\nb\nc",
        '["a","b"]',
        "a,b",
        "a;b",
        '"a"',
        "clé",
    ],
)
def test_a_text_that_is_not_tokens_alone_makes_no_token(text: str) -> None:
    with pytest.raises(UnfitSecret) as raised:
        api_tokens(text)
    assert "token" in str(raised.value)


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("text", ["\n", " ", "a\n"])
def test_no_text_of_a_secret_opens_to_an_empty_token(text: str) -> None:
    try:
        tokens = api_tokens(text)
    except UnfitSecret:
        tokens = ()
    keyring = Keyring(tokens, {}, asked=True)
    for empty in (b"", b" "):
        assert keyring.grant([(b"x-api-key", empty)]) is None
        assert keyring.grant([(b"authorization", b"Bearer " + empty)]) is None
