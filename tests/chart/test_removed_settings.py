"""A release with removed settings is upgraded on a real API server, as the install page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart import former
from tests.chart.cluster import Release
from tests.chart.former import VALUES
from tests.chart.helm import CHART, Helm, HelmError
from tests.controlplane.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane


def test_an_upgrade_names_each_removed_setting_and_null_removes_it(
    helm: Helm, control_plane: ControlPlane, tmp_path: Path
) -> None:
    release = Release(helm, control_plane, former.unpacked(tmp_path))
    config = {"backoffTime": 7, "bindingWait": 3, "faultTolerance": {"retryLimitCeiling": 4}}
    release.install(**VALUES | {"config": config})
    removed: list[str] = []
    for name in ("bindingWait", "faultTolerance.retryLimitCeiling"):
        with pytest.raises(HelmError, match=rf"config\.{name} is no longer a setting; remove it"):
            upgrade(helm, control_plane, release, *removed)
        removed += ("--set", f"config.{name}=null")
    upgrade(helm, control_plane, release, *removed)
    text = release.config().read_text()
    assert "backoffTime: 7" in text
    assert "bindingWait" not in text
    assert "retryLimitCeiling" not in text


def upgrade(helm: Helm, plane: ControlPlane, release: Release, *args: str) -> None:
    where = (release.name, str(CHART), "--namespace", release.namespace)
    flags = ("--reset-then-reuse-values", *args)
    helm.run("upgrade", *where, *flags, kubeconfig=plane.admin_kubeconfig)
