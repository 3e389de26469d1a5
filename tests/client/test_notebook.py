"""docs/use/python.ipynb has the output that its cells have now."""

from pathlib import Path

from tests.cli.embedded import Embedded
from tests.client.notebook import NOTEBOOK, executed, text_of


def test_the_notebook_is_as_its_cells_are_executed(tmp_path: Path) -> None:
    with Embedded(tmp_path).running() as cluster:
        assert text_of(executed(cluster.kubeconfig)) == NOTEBOOK.read_text()
