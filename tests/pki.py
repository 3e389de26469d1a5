"""Certificates for tests, by `openssl`."""

import subprocess
from pathlib import Path

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def authority(folder: Path, name: str) -> None:
    """NAME.crt and NAME.key of a CA, which has that common name."""
    _openssl(
        folder, "req", "-x509", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.crt",
        "-subj", f"/CN={name}",
    )  # fmt: skip


def issue(folder: Path, ca: str, name: str, extension: str = "") -> None:
    """NAME.crt and NAME.key, signed by a CA of the same folder."""
    request = ("req", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr")
    _openssl(folder, *request, "-subj", f"/CN={name}")
    (folder / "extensions").write_text(extension)
    _openssl(
        folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key",
        "-CAcreateserial", "-out", f"{name}.crt", "-days", "2", "-extfile", "extensions",
    )  # fmt: skip


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
