"""Everything that can go wrong is told in one line, with what to do, and has its exit code."""

import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcad.cli.main import COMMANDS, main
from mcad.client.scope import Target
from mcad.client.session import Environment
from mcad.kube.errors import ConfigError
from tests.cli.cluster import kubeconfig
from tests.cli.conftest import FakeEnvironment, Type
from tests.fakeapi import GROUP, FakeApi, refuse
from tests.serving import served

NOBODY = "http://127.0.0.1:1"  # tcpmux: a port that is not in use


def _unauthorized(api: FakeApi) -> None:
    api.fail_always("*", "", refuse(401, "Unauthorized", "Unauthorized"))


def _without_crd(api: FakeApi) -> None:
    api.objects["leases"].clear()
    api.served = tuple(one for one in api.served if one.group != GROUP)


def _by_policy(api: FakeApi) -> None:
    told = "denied request: ask for that right or remove it."
    api.fail_always("*", "", refuse(403, "Forbidden", told))


def _denied(*plurals: str) -> Callable[[FakeApi], None]:
    """Without a dispatcher, and without the right to list these."""

    def change(api: FakeApi) -> None:
        api.objects["leases"].clear()
        api.deny(*plurals)

    return change


def _unled(api: FakeApi) -> None:
    api.objects["leases"].clear()


def _busy(api: FakeApi) -> None:
    api.fail_always("GET", "reports", refuse(503, "ServiceUnavailable", "etcd is down"))


Case = tuple[tuple[str, ...], Callable[[FakeApi], None], int, str]

CASES: list[Case] = [
    (
        ("queue",),
        FakeApi.break_down,
        1,
        "cannot be reached: GET /version: Connection refused; check",
    ),
    (("capacity",), FakeApi.break_down, 1, "or choose another one with --kubeconfig or --context"),
    (("get",), _unauthorized, 1, "does not accept your credentials (401 Unauthorized); log in"),
    (("queue",), _without_crd, 1, "install them with `mcad crd | kubectl apply --server-side -f"),
    (("describe", "x"), _without_crd, 1, "AppWrappers are not installed in this cluster"),
    (("capacity",), _unled, 3, "the capacity is not stored; the dispatcher does not answer at its"),
    (("what-if", "--without", "x"), _unled, 3, "(503 Service Unavailable); see `mcad debug check`"),
    (("what-if", "--drain", "x"), _unled, 3, "does not answer at its visibility API (503"),
    (("queue", "-A"), _denied("appwrappers"), 1, "whole cluster; choose a namespace of yours"),
    (("queue",), _denied("appwrappers"), 1, f"you may not list appwrappers.{GROUP} in namespace d"),
    (("queue", "-w"), _denied("appwrappers"), 1, "for the role `view` in this one"),
    (("describe", "x"), _denied("appwrappers"), 1, 'User "ann" cannot list resource'),
    (("cancel", "x"), _by_policy, 1, "ask for that right or remove it; ask an administrator for"),
    (("queue",), _busy, 1, "the API server is busy or broken (503 ServiceUnavailable: etcd is"),
    (
        ("queue",),
        FakeApi.break_down,
        1,
        "cannot be reached: GET /version: Connection refused; check",
    ),
    (("queue", "-w"), _unauthorized, 1, "does not accept your credentials"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case[0]))
def test_one_line(case: Case, api: FakeApi, mcad: Type) -> None:
    args, change, code, words = case
    change(api)
    result = mcad(*args)
    assert result.exit_code == code
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def test_events_that_may_not_be_listed_are_a_warning(api: FakeApi, mcad: Type) -> None:
    api.deny("events")
    result = mcad("describe", "0002-aw-generic-deployment-2")
    assert result.exit_code == 0
    assert result.stderr == "warning: you may not list events in namespace default\n"


def test_no_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    result = CliRunner().invoke(main, ["queue"])
    assert result.exit_code == 1
    assert "name a file with --kubeconfig or in KUBECONFIG" in result.stderr


def test_an_unknown_context_is_told(tmp_path: Path) -> None:
    args = ["get", "--kubeconfig", kubeconfig(tmp_path, NOBODY), "--context", "x"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 1
    assert "look at it with `kubectl config get-contexts`" in result.stderr


def test_a_bug_is_one_line_too(api: FakeApi) -> None:
    class Faulty(FakeEnvironment):
        def open(self, target: Target):  # type: ignore[no-untyped-def]
            raise KeyError("oops\nand more")

    result = CliRunner().invoke(main, ["queue"], obj=Faulty(api))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: internal error: KeyError: 'oops\\nand more' at test_")
    assert result.stderr.endswith("; please report it\n")


def test_a_failure_of_the_configuration_is_told_as_it_is(api: FakeApi) -> None:
    class Faulty(Environment):
        def open(self, target: Target):  # type: ignore[no-untyped-def]
            raise ConfigError("kubeconfig x: torn")

    result = CliRunner().invoke(main, ["queue"], obj=Faulty())
    assert (result.exit_code, result.stderr) == (1, "error: kubeconfig x: torn\n")


def test_an_interruption_is_no_success(api: FakeApi) -> None:
    class Interrupted(FakeEnvironment):
        def open(self, target: Target):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    result = CliRunner().invoke(main, ["capacity"], obj=Interrupted(api))
    assert result.exit_code == 130
    assert result.stderr.strip() == "error: interrupted"


def test_help_lists_every_command_and_the_exit_codes(mcad: Type) -> None:
    said = mcad("--help").output
    assert (
        "Exit codes: 0 success, 1 error, 2 wrong usage, 3 the dispatcher cannot be asked,"
        in " ".join(said.split())
    )
    for name, (_, line) in COMMANDS.items():
        assert f"  {name}" in said
        assert line in said


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_begins_its_help_with_its_line(name: str, mcad: Type) -> None:
    result = mcad(name, "--help")
    assert result.exit_code == 0
    assert COMMANDS[name][1] in result.output


def test_no_command_is_wrong_usage(mcad: Type) -> None:
    result = mcad()
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (NOBODY, "Connection refused"),
        ("https://127.0.0.1:1", "Connection refused"),
        ("https://no-such-host.invalid", "not known"),
    ],
)
def test_what_keeps_us_from_a_server_is_told_in_words(url: str, words: str, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, url)
    for args in (["get", "--kubeconfig", config], ["get", "--server", url, "-n", "x"]):
        said = CliRunner().invoke(main, args).stderr
        assert f"cannot be reached: {'GET /version: ' * ('--server' not in args)}" in said
        assert words in said
        assert "default" not in said
        assert "Errno" not in said


def test_a_certificate_that_is_not_trusted_is_told_in_words(tmp_path: Path) -> None:
    with served(FakeApi(), self_signed(tmp_path)) as url:
        config = kubeconfig(tmp_path, url)
        for args in (["get", "--kubeconfig", config], ["get", "--server", url, "-n", "x"]):
            said = CliRunner().invoke(main, args).stderr
            assert "its certificate is not trusted (self-signed certificate)" in said


def self_signed(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key", folder / "certificate"
    made = ["-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1", "-days", "1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context
