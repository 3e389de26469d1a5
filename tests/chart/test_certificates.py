"""The values and certificates of docs/operate/certificates.md and gitops.md, beside the chart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tests.chart.helm import NAMESPACE, ROOT, Helm, of_kind, only

Json = dict[str, Any]

PAGES = ROOT / "docs/operate"


def examples(page: Path) -> list[Json]:
    """The YAML of a page, document by document."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [one for block in blocks for one in yaml.safe_load_all(block)]


CERTIFICATES = [
    one for one in examples(PAGES / "certificates.md") if one.get("kind") == "Certificate"
]
(VALUES,) = (one for one in examples(PAGES / "certificates.md") if "visibility" in one)
(OF_GITOPS,) = (one for one in examples(PAGES / "gitops.md") if "visibility" in one)


def test_the_names_are_those_of_services_of_the_chart(helm: Helm) -> None:
    services = {one["metadata"]["name"] for one in of_kind(helm.template(**VALUES), "Service")}
    named = {name for one in CERTIFICATES for name in one["spec"]["dnsNames"]}
    assert named == {f"{name}.{NAMESPACE}.svc" for name in services}
    assert {one["metadata"]["namespace"] for one in CERTIFICATES} == {NAMESPACE}


def test_the_chart_makes_no_certificate_and_mounts_these(helm: Helm) -> None:
    objects = helm.template(**VALUES)
    assert of_kind(objects, "Secret") == []
    made = {one["spec"]["secretName"] for one in CERTIFICATES}
    pod = only(objects, "Deployment")["spec"]["template"]["spec"]
    assert {one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one} == made
    api = only(objects, "APIService")
    assert "caBundle" not in api["spec"]
    (injected,) = api["metadata"]["annotations"].values()
    names = {f"{NAMESPACE}/{one['metadata']['name']}": one for one in CERTIFICATES}
    assert names[injected]["spec"]["secretName"] == VALUES["visibility"]["secretName"]


def test_with_these_values_the_chart_renders_the_same_twice(helm: Helm) -> None:
    """Without, each rendering has another certificate."""

    def rendered(values: Json) -> list[str]:
        args = ("template", "mcad", str(ROOT / "deploy/helm/mcad"), "--namespace", NAMESPACE)
        return [helm.run(*args, values=values) for _ in range(2)]

    first, second = rendered(OF_GITOPS)
    assert first == second
    first, second = rendered({})
    assert first != second
    assert OF_GITOPS == VALUES
