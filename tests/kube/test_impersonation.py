"""Requests as another user: the headers, and that both transports send each of them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.client.scope import Target
from mcad.client.session import Environment
from mcad.kube.errors import ConfigError
from mcad.kube.impersonation import impersonation
from mcad.kube.port import Request
from tests.kube.support import kubeconfig
from tests.serving import read_request, serve_raw

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
OF_FILE = {
    "as": "ann",
    "as-uid": "7",
    "as-groups": ["a", "b"],
    "as-user-extra": {"x/y": ["1", "2"]},
}


@pytest.mark.parametrize(
    ("entry", "pairs"),
    [
        ({"token": "t"}, ()),
        ({"as": "ann"}, (("Impersonate-User", "ann"),)),
        (
            OF_FILE,
            (
                ("Impersonate-User", "ann"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Extra-x%2Fy", "1"),
                ("Impersonate-Extra-x%2Fy", "2"),
            ),
        ),
    ],
)
def test_the_headers_of_a_user(entry: dict[str, Any], pairs: tuple[tuple[str, str], ...]) -> None:
    assert impersonation(entry) == pairs


def test_groups_need_a_user() -> None:
    with pytest.raises(ConfigError, match="with a user only: add --as USER"):
        impersonation({"as": None, "as-groups": ("a",)})


async def sent(folder: Path, user: dict[str, Any], *, watches: bool, **options: Any) -> list[str]:
    """The headers about impersonation of one request of an Environment."""
    seen: list[bytes] = []

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(OK)

    async with serve_raw(answers) as url:
        path = folder / "config"
        path.write_text(yaml.safe_dump(kubeconfig(url, {"token": "t"} | user)))
        world, target = Environment(), Target(str(path), **options)
        opening = world.open(target) if watches else world.open_quickly(target)
        async with opening as (api, _):
            assert (await api.request(Request("GET", "/version"))).status == 200
    return re.findall(r"(?i)(impersonate-\S+: .*)\r", seen[0].decode())


@pytest.mark.parametrize("watches", [True, False], ids=["library", "quick"])
async def test_each_header_is_sent(watches: bool, tmp_path: Path) -> None:
    assert await sent(tmp_path, {}, watches=watches) == []
    of_file = await sent(tmp_path, OF_FILE, watches=watches)
    assert of_file == [f"{name}: {value}" for name, value in impersonation(OF_FILE)]
    given = {"as_user": "bob", "as_groups": ("c", "d")}
    assert await sent(tmp_path, OF_FILE, watches=watches, **given) == [
        "Impersonate-User: bob",
        "Impersonate-Group: c",
        "Impersonate-Group: d",
    ]
