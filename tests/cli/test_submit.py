"""``mcad submit``: what is sent, what is refused before, and what the server says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from mcad.kube.errors import ConnectionLost
from mcad.kube.port import Request, Response
from tests.cli.cluster import appwrapper, deployment
from tests.cli.conftest import Type
from tests.fakeapi import GROUP, FakeApi, refuse

Json = dict[str, Any]
Submit = Callable[..., Result]

PATH = f"/apis/{GROUP}/v1beta1/namespaces/default/appwrappers"


def wrapper(name: str = "new", **metadata: str) -> Json:
    obj = appwrapper(name, "", "", deployment(name, replicas=1, cpu="1", memory="1Gi"))
    del obj["status"]
    obj["metadata"] = {"name": name, **metadata}
    return obj


def write(folder: Path, *objects: Any, name: str = "aw.yaml") -> str:
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def aliases(levels: int) -> str:
    """A map whose last entry stands for 9 to the power of ``levels`` texts."""
    rows = ["a0: &a0 [" + ",".join(["lol"] * 9) + "]"]
    rows += [f"a{n}: &a{n} [" + ",".join([f"*a{n - 1}"] * 9) + "]" for n in range(1, levels)]
    return "\n".join(rows) + "\n"


def posts(api: FakeApi) -> list[Request]:
    """AppWrappers that were sent."""
    found = (request for request in api.requests if request.method == "POST")
    return [request for request in found if request.path.endswith("/appwrappers")]


@pytest.fixture
def submit(mcad: Type, tmp_path: Path) -> Submit:
    """``mcad submit`` of a file with these objects."""
    return lambda *objects: mcad("submit", write(tmp_path, *objects))


def test_it_creates_and_says_so_as_kubectl_does(api: FakeApi, submit: Submit) -> None:
    result = submit(wrapper())
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"appwrapper.{GROUP}/new created\n"
    (post,) = posts(api)
    assert post.path == PATH
    assert post.params == {"fieldValidation": "Strict"}
    assert post.body == wrapper(namespace="default")


def test_standard_input_several_files_and_several_documents(
    api: FakeApi, mcad: Type, tmp_path: Path
) -> None:
    both = write(tmp_path, wrapper("a"), None, {"kind": "List", "items": [wrapper("b")]})
    later = json.dumps(wrapper("c", namespace="team-a"), indent="\t")
    result = mcad("submit", "-f", both, "-f", "-", "-o", "name", stdin=later)
    assert result.exit_code == 0
    assert result.stdout == "".join(f"appwrapper.{GROUP}/{name}\n" for name in "abc")
    assert [post.path.split("/")[5] for post in posts(api)] == ["default", "default", "team-a"]


def test_files_can_be_named_without_f(api: FakeApi, mcad: Type, tmp_path: Path) -> None:
    named, bare = (write(tmp_path, wrapper(name), name=f"{name}.yaml") for name in ("a", "b"))
    result = mcad("submit", bare, "-f", named, "-o", "name")
    assert result.stdout == f"appwrapper.{GROUP}/a\nappwrapper.{GROUP}/b\n"


def test_aliases_are_read_as_they_are_meant(api: FakeApi, mcad: Type, tmp_path: Path) -> None:
    path = tmp_path / "shared.yaml"
    labels = {"team": "red"}
    obj = wrapper() | {"metadata": {"name": "new", "labels": labels, "annotations": labels}}
    path.write_text(yaml.safe_dump(obj))
    assert "&id001" in path.read_text()
    assert mcad("submit", str(path)).exit_code == 0
    assert posts(api)[0].body["metadata"]["annotations"] == labels


def test_a_refusal_by_policy_ends_with_one_full_stop_at_most(api: FakeApi, submit: Submit) -> None:
    api.fail("POST", "appwrappers", refuse(403, "Forbidden", "denied: take it out."))
    said = submit(wrapper()).stderr
    assert said == (
        "error: default/new cannot be created: denied: take it out; ask an administrator for this "
        "right\n"
    )


def test_a_namespace_can_be_named(api: FakeApi, mcad: Type, tmp_path: Path) -> None:
    assert mcad("submit", "-n", "team-a", "-f", write(tmp_path, wrapper())).exit_code == 0
    assert posts(api)[0].path.split("/")[5] == "team-a"
    elsewhere = write(tmp_path, wrapper(namespace="other"))
    result = mcad("submit", "-n", "team-a", "-f", elsewhere)
    assert result.exit_code == 1
    assert result.stderr.endswith("is for namespace other, not team-a; omit one of them\n")


@pytest.mark.parametrize(
    "case", [("client", "created (dry run)", 0), ("server", "created (server dry run)", 1)]
)
def test_dry_runs(case: tuple[str, str, int], api: FakeApi, mcad: Type, tmp_path: Path) -> None:
    kind, said, sent = case
    result = mcad("submit", "--dry-run", kind, "-f", write(tmp_path, wrapper()))
    assert result.exit_code == 0
    assert said in result.stdout
    assert len(posts(api)) == sent
    assert all(post.params["dryRun"] == "All" for post in posts(api))
    assert "new" not in [obj["metadata"]["name"] for obj in api.objects["appwrappers"].values()]


def test_a_client_dry_run_prints_what_would_be_sent(mcad: Type, tmp_path: Path) -> None:
    path = write(tmp_path, wrapper())
    result = mcad("submit", "--dry-run", "client", "-f", path, "-o", "yaml")
    assert yaml.safe_load(result.stdout) == wrapper(namespace="default")


def test_faults_are_told_all_at_once_and_nothing_is_sent(
    api: FakeApi, mcad: Type, tmp_path: Path
) -> None:
    bad = wrapper("bad")
    template = bad["spec"]["resources"]["GenericItems"][0]["generictemplate"]
    template["spec"]["replicas"] = -1
    template["metadata"]["name"] = "Not_A_Name"
    path = write(tmp_path, wrapper("good"), bad)
    result = mcad("submit", "-f", path)
    assert result.exit_code == 1
    assert posts(api) == []
    where = f"error: {path}, document 2: spec.resources.GenericItems[0].generictemplate"
    assert result.stderr.splitlines() == [
        f"{where}.metadata.name: 'Not_A_Name' is not a DNS name: use lower case letters, digits, "
        "'-' and '.'.",
        f"{where}.spec.replicas: must not be negative, but is -1.",
        "error: nothing was sent: 2 faults to correct first",
    ]


def test_kinds_that_the_cluster_may_learn_are_warnings(api: FakeApi, submit: Submit) -> None:
    unknown = wrapper()
    items = unknown["spec"]["resources"]["GenericItems"]
    items[0]["generictemplate"] = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
    }
    result = submit(unknown)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: ")
    assert "example.com/v1 Widget is not installed in the cluster" in result.stderr
    assert len(posts(api)) == 1


def test_ignored_fields_are_warnings(submit: Submit) -> None:
    old = wrapper()
    old["spec"]["resources"]["Items"] = []
    old["spec"]["resourcs"] = {}
    result = submit(old)
    assert result.exit_code == 0
    assert "spec.resources.Items: ignored; wrap these objects as GenericItems." in result.stderr
    assert "spec.resourcs: unknown field, ignored." in result.stderr


CONTENTS = [
    ("", "contains no object; write the AppWrapper into it"),
    ("a: [1\nb: 2\n", "line 2: cannot be read: expected ',' or ']'"),
    ("kind: AppWrapper\nkind: Job\n", "line 2: cannot be read: the key 'kind' is given twice"),
    (aliases(7), "line 1: cannot be read: its aliases expand to more than 3 MiB; write the val"),
    (aliases(9), "line 1: cannot be read: its aliases expand to more than 3 MiB; write the val"),
    ("kind: AppWraper\n", 'kind AppWraper does not exist. Did you mean "AppWrapper"?'),
    ("kind: appwrapper\n", 'kind appwrapper does not exist. Did you mean "AppWrapper"?'),
    ('{"kind": "AppWrapper", "kind": "Job"}', "the key 'kind' is given twice"),
    ("- a\n- b\n", "is not an object; it begins with apiVersion, kind and metadata"),
    ("just words", "is not an object"),
    ("a: &a\n  b: *a\n", "is not YAML that can be sent as JSON"),
    ("a: .nan\n", "is not YAML that can be sent as JSON"),
    ('{"a": NaN}', "is not YAML that can be sent as JSON"),
    ("a: !!binary aGk=\n", "is not YAML that can be sent as JSON"),
    (
        "a: !!python/object:os.system x\n",
        "line 1: cannot be read: could not determine a const",
    ),
    ("apiVersion: batch/v1\nkind: Job\n", "kind is Job, not AppWrapper; put it into spec.compo"),
    ("metadata: {}\n", "kind is missing; write AppWrapper"),
    ("apiVersion: mcad.ibm.com/v1beta1\nkind: AppWrapper\n", "is that of MCAD before v1.33; write"),
    ("kind: AppWrapper\n", f"apiVersion is missing: write {GROUP}/v1beta1 or {GROUP}/v1beta2"),
    (f"apiVersion: {GROUP}/v1beta2\nkind: AppWrapper\n", "metadata.name: is required: give"),
]


@pytest.mark.parametrize(("content", "words"), CONTENTS, ids=range(len(CONTENTS)))
def test_contents_that_are_refused(
    content: str, words: str, api: FakeApi, mcad: Type, tmp_path: Path
) -> None:
    path = tmp_path / "aw.yaml"
    path.write_text(content)
    result = mcad("submit", "-f", str(path))
    assert result.exit_code == 1
    assert str(path) in result.stderr.splitlines()[0]
    assert words in result.stderr
    assert posts(api) == []


def test_files_that_cannot_be_read(mcad: Type, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, words in (
        (tmp_path / "none.yaml", "there is no such file; check the path"),
        (tmp_path, "is a directory; name its files"),
        (binary, "is not text; write YAML or JSON in UTF-8"),
    ):
        result = mcad("submit", "-f", str(path))
        assert (result.exit_code, result.stderr) == (1, f"error: {path}: {words}\n")


REFUSALS = [
    (refuse(403, "Forbidden", "ann may not"), "default/new cannot be created: ann may not; ask an"),
    (refuse(404, "NotFound", 'namespaces "default" not found'), "check that the namespace exists"),
    (refuse(409, "AlreadyExists", "it exists"), "default/new exists already; delete it first, or"),
    (refuse(422, "Invalid", "spec: no"), "default/new cannot be created: 422 Invalid: spec: no"),
    (refuse(503, "ServiceUnavailable", "no"), "the API server is busy or broken (503 Service"),
]


@pytest.mark.parametrize(("answer", "words"), REFUSALS, ids=lambda value: str(value)[:40])
def test_refusals_of_the_server(answer: Response, words: str, api: FakeApi, submit: Submit) -> None:
    api.fail_always("POST", "/appwrappers", answer)
    result = submit(wrapper())
    assert result.exit_code == 1
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_a_lost_answer_is_not_called_a_failure(api: FakeApi, submit: Submit) -> None:
    async def lose(_: Request) -> Response:
        raise ConnectionLost("cut off")

    api.fail("POST", "/appwrappers$", lose)
    result = submit(wrapper())
    assert result.exit_code == 1
    assert "default/new may or may not be created (cut off); look with `mcad get`" in result.stderr


def test_one_refusal_does_not_stop_the_others(api: FakeApi, submit: Submit) -> None:
    first = wrapper("0001-aw-generic-deployment-1")
    result = submit(first, wrapper("new"))
    assert result.exit_code == 1
    assert "exists already" in result.stderr
    assert result.stdout == f"appwrapper.{GROUP}/new created\n"


def test_times_and_keys_stay_texts(api: FakeApi, mcad: Type, tmp_path: Path) -> None:
    path = tmp_path / "aw.yaml"
    obj = wrapper(namespace="default")
    template = obj["spec"]["resources"]["GenericItems"][0]["generictemplate"]
    text = yaml.safe_dump(obj).replace("image: echo", "image: 2027-01-15")
    path.write_text(text + "  1: x\n")
    assert mcad("submit", "-f", str(path)).exit_code == 0
    body = posts(api)[0].body
    assert isinstance(body, dict)
    template = body["spec"]["resources"]["GenericItems"][0]["generictemplate"]
    assert template["spec"]["template"]["spec"]["containers"][0]["image"] == "2027-01-15"
    assert body["spec"]["1"] == "x"


# -- what the API server says to the items ----------------------------------------------------

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def test_items_are_created_as_a_dry_run_first(api: FakeApi, submit: Submit) -> None:
    result = submit(wrapper())
    assert (result.exit_code, result.stderr) == (0, "")
    item, sent = [request for request in api.requests if request.method == "POST"]
    assert (item.path, sent.path) == (DEPLOYMENTS, PATH)
    assert item.params == {"dryRun": "All", "fieldValidation": "Strict"}
    assert "ownerReferences" not in item.body["metadata"]
    assert item.body["metadata"]["labels"]["workload.codeflare.dev/item"] == "0"
    assert "new" not in api.names("deployments")


UNKNOWN = (
    'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
    'unknown field "spec.replica"'
)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (refuse(400, "BadRequest", UNKNOWN), 'unknown field "spec.replica"'),
        (refuse(422, "Invalid", "spec.replicas: Invalid value"), "spec.replicas: Invalid value"),
    ],
)
def test_a_fault_of_an_item_is_told_and_nothing_is_sent(
    refusal: Response, words: str, api: FakeApi, mcad: Type, tmp_path: Path
) -> None:
    api.fail("POST", "deployments", refusal)
    path = write(tmp_path, wrapper("a"), wrapper("b"))
    result = mcad("submit", path)
    assert result.exit_code == 1
    assert posts(api) == []
    assert result.stderr.splitlines() == [
        f"error: {path}, document 1: Deployment default/a: {words}",
        "error: nothing was sent: 1 fault to correct first",
    ]


NO_RIGHT = 'deployments.apps is forbidden: User "ann" cannot create resource "deployments"'


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (
            refuse(403, "Forbidden", NO_RIGHT),
            f"is not checked: you may not create it yourself ({NO_RIGHT})",
        ),
        (
            refuse(403, "Forbidden", "exceeded quota: q."),
            "would be rejected now: exceeded quota: q",
        ),
        (refuse(400, "BadRequest", "w does not support dry run"), "is not checked: w does not"),
        (refuse(409, "AlreadyExists", "is there"), "exists already; the AppWrapper waits until"),
        (refuse(503, "ServiceUnavailable", "busy"), "is not checked: busy"),
    ],
)
def test_what_says_nothing_about_the_manifest_is_a_warning(
    refusal: Response, words: str, api: FakeApi, mcad: Type, tmp_path: Path
) -> None:
    api.fail("POST", "deployments", refusal)
    path = write(tmp_path, wrapper())
    result = mcad("submit", path)
    assert result.exit_code == 0
    assert len(posts(api)) == 1
    assert result.stderr.startswith(f"warning: {path}: Deployment default/new {words}")
    assert len(result.stderr.splitlines()) == 1


def test_an_item_with_a_name_that_the_server_makes_is_checked(api: FakeApi, submit: Submit) -> None:
    obj = wrapper()
    obj["metadata"] = {"generateName": "new-"}
    submit(obj)
    (item, *_) = [request for request in api.requests if request.path == DEPLOYMENTS]
    assert item.body["metadata"]["labels"]["workload.codeflare.dev/appwrapper"] == "new-xxxxx"
