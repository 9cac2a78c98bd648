"""The client reads answers and addresses."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from cragside.client import Client, error_of
from cragside.domain.errors import ConfigurationError, CragsideError, DeadlineExceeded, ServiceUnavailable


async def answered(status: int, body: str) -> CragsideError:
    """The error that an answer raises."""
    transport = httpx.MockTransport(lambda _: httpx.Response(status, text=body))
    async with Client("http://somebody:hush@rag", transport=transport) as client:
        with pytest.raises(CragsideError) as raised:
            await client.get("/v1/documents")
    assert "hush" not in raised.value.message
    return raised.value


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, '{"error": "no"}', "validation_error"),
        (404, '{"error": "no"}', "not_found"),
        (404, '{"detail": "no"}', "not_found"),
        (404, "<html>", "processing_error"),
        (307, "", "processing_error"),
        (401, "{}", "unauthorized"),
        (403, "", "forbidden"),
        (413, '{"message": "Request Too Long"}', "payload_too_large"),
        (500, '{"error": {"type": "unheard of", "message": "no"}}', "processing_error"),
        (502, "bad gateway", "service_unavailable"),
        (504, '{"message": "Endpoint request timed out"}', "timeout_error"),
        (200, "<html>", "processing_error"),
    ],
)
async def test_an_error_answer_becomes_the_error_of_its_code_or_status(status: int, body: str, code: str) -> None:
    assert (await answered(status, body)).code == code


def test_the_component_and_the_details_of_an_error_are_kept() -> None:
    details = {"component": "grader", "reason": "is down", "message": "x"}
    error = error_of({"error": {"type": "service_unavailable", "message": "no", "details": details}})
    assert isinstance(error, ServiceUnavailable)
    assert (error.component, error.message, error.details) == ("grader", "no", details)


async def test_an_answer_takes_so_many_seconds_or_as_long_as_it_takes() -> None:
    async def slow(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.2)
        return httpx.Response(200, json={})

    transport = httpx.MockTransport(slow)
    async with Client("http://rag", seconds=0.05, transport=transport) as client:
        with pytest.raises(DeadlineExceeded):
            await client.get("/v1/documents")
    async with Client("http://rag", seconds=None, transport=transport) as client:
        assert await client.get("/v1/documents") == {}


async def test_deleting_a_missing_document_is_no_error() -> None:
    transport = httpx.MockTransport(
        lambda _: httpx.Response(404, json={"error": {"type": "not_found", "message": "no"}})
    )
    async with Client("http://rag", transport=transport) as client:
        assert await client.delete("/v1/documents/doc-1") is False


@pytest.mark.parametrize("address", ["rag:8642", "http://", "http://[::1", "ftp://rag"])
def test_the_error_for_an_invalid_address_names_the_setting(address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^--api "):
        Client(address, setting="--api")


async def test_a_service_whose_certificate_nobody_vouches_for_gets_no_token(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", "/CN=rag", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    asked: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1))
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context) as server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Client(address, token="secret") as client:
            with pytest.raises(ServiceUnavailable, match="cannot be reached"):
                await client.get("/v1/documents")
    assert asked == []
