"""``mcad ui`` as it is typed: at a served cluster, and where it cannot start."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

from tests.cli.cluster import kubeconfig, tutorial
from tests.serving import served

MCAD = [sys.executable, "-m", "mcad"]


def test_the_printed_address_opens_the_page_until_a_signal(tmp_path: Path) -> None:
    with served(tutorial()) as url:
        args = [*MCAD, "ui", "--no-browser", "--kubeconfig", kubeconfig(tmp_path, url)]
        with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = line.removeprefix("The page is at ").strip()
            with build_opener(HTTPCookieProcessor()).open(address) as answer:
                assert "0002-aw-generic-deployment-2" in answer.read().decode()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            assert "For another browser: http://127.0.0.1:" in process.stdout.read()


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = _run("--kubeconfig", kubeconfig(tmp_path, f"http://127.0.0.1:{port}"))
    assert done.returncode == 1
    assert done.stderr.startswith("error: the API server cannot be reached: ")
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with served(tutorial()) as url, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _run("--kubeconfig", kubeconfig(tmp_path, url), "--port", str(port))
    assert done.returncode == 1
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port\n"
    )


def test_without_the_extra_the_remedy_is_told() -> None:
    code = "import sys; sys.modules['jinja2'] = None; from mcad.cli.main import main; main()"
    command = [sys.executable, "-c", code, "ui"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "error: `mcad ui` needs libraries that are not installed: run `pip install '.[ui]'` in the "
        "source directory of mcad\n"
    )


def _run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [*MCAD, "ui", "--no-browser", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
