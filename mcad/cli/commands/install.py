"""``mcad crd`` and ``mcad rbac``: print manifests that the dispatcher needs in the cluster."""

from __future__ import annotations

import click

from mcad.api.crd import PAUSE_PLURAL, PLURAL, QUOTA_PLURAL, crd_yaml
from mcad.api.rbac import rbac_yaml
from mcad.cli.arguments.options import settings_options
from mcad.cli.errors import warn
from mcad.client.config import load_config
from mcad.client.scope import Settings

UNGUARDED = (
    "with these rights every user that may create AppWrappers may create every kind in "
    "wrappedResources. The chart has an admission policy that prevents this, and another one that "
    "rejects faulty manifests: helm template mcad deploy/helm/mcad --show-only "
    "templates/policy.yaml --show-only templates/manifests.yaml | kubectl apply -f -"
)


@click.command()
@click.argument("kind", type=click.Choice([PLURAL, QUOTA_PLURAL, PAUSE_PLURAL]), required=False)
def crd(kind: str | None) -> None:
    """Print the CustomResourceDefinitions to install.

    All, or that of one kind. Use it as `mcad crd | kubectl apply --server-side -f -`.
    """
    click.echo(crd_yaml(kind or ""), nl=False)


@click.command()
@click.option("--namespace", "-n", default="mcad-system", show_default=True, metavar="NAME")
@click.option("--service-account", default="mcad", show_default=True, metavar="NAME")
@settings_options
def rbac(namespace: str, service_account: str, settings: Settings) -> None:
    """Print the roles and bindings that the dispatcher needs.

    They depend on the configuration: only kinds in wrappedResources may be created. Use it as
    `mcad rbac | kubectl apply -f -`.
    """
    config = load_config(settings)
    click.echo(rbac_yaml(config, namespace, service_account), nl=False)
    if config.impersonate is None:
        warn(UNGUARDED)
