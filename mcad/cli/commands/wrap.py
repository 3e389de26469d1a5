"""``mcad wrap``: makes an AppWrapper of manifests of any kind, such as those of Helm."""

from __future__ import annotations

from typing import Any

import click

from mcad.cli.arguments.global_options import form_option, namespace_option
from mcad.cli.arguments.options import Option, files_option, record
from mcad.cli.pages.tables import echo_structured
from mcad.client.manifests.documents import read_documents
from mcad.client.manifests.wrapping import Wrapping, wrapped


class LeafType(click.ParamType[tuple[str, str]]):
    """``TREE=LEAF``: a leaf of a quota tree."""

    name = "TREE=LEAF"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the leaf."""
        tree, separator, leaf = str(value).partition("=")
        if not (tree and separator and leaf):
            self.fail(f"{value!r}: write TREE=LEAF", param, ctx)
        return tree, leaf


def wrapping_options(*, required: bool) -> Option:
    """The options of a wrapping; ``required``: there is no command without its name."""
    return record(
        "wrapping",
        Wrapping,
        click.option(
            "--name",
            metavar="NAME",
            required=required,
            default=None if required else "",
            help="The AppWrapper's name.",
        ),
        click.option("--priority", type=int, help="Its priority; higher goes first."),
        click.option(
            "--leaf",
            "leaves",
            type=LeafType(),
            multiple=True,
            help="The leaf of a quota tree that it is charged to; may be repeated.",
        ),
        click.option(
            "--dialect",
            type=click.Choice(["v1beta1", "v1beta2"]),
            default="v1beta2",
            show_default=True,
            help="v1beta1 is MCAD's.",
        ),
        click.option(
            "--without-rights",
            is_flag=True,
            help="Leave out ServiceAccounts, Roles and RoleBindings, to be applied before.",
        ),
    )


@click.command()
@files_option("A file of YAML or JSON")
@namespace_option
@wrapping_options(required=True)
@form_option(click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def wrap(paths: tuple[str, ...], namespace: str | None, wrapping: Wrapping, form: str) -> None:
    """Make an AppWrapper of manifests of any kind.

    Its items are the objects of these files, in their order. Helm hooks and cluster-scoped objects
    are left out, each with a warning: apply them before. What kubectl exports becomes a manifest
    again, and objects that other objects of the files own are left out: these make them.

    \b
      helm template mine ./chart | mcad wrap - --name mine --without-rights | mcad submit -f -
      kubectl get deployments,replicasets,pods -o yaml | mcad wrap -f - --name shop
    """
    documents = [document for path in paths for document in read_documents(path)]
    echo_structured(wrapped(documents, namespace, wrapping), form)
