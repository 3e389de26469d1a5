"""docs/use/python.ipynb: made of the cells below, which are executed on an embedded cluster.

    .venv/bin/python -m tests.client.notebook

writes it anew with its output. The cells are run by this module, because a Jupyter kernel would be
thirty packages for one page; what is used of it is the value of the last line of a cell.
"""

from __future__ import annotations

import ast
import json
import os
import tempfile
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from tests.cli.embedded import Embedded

Json = dict[str, Any]

NOTEBOOK = Path(__file__).parents[2] / "docs" / "use" / "python.ipynb"

TEXT, CODE = "markdown", "code"

CELLS = (
    (
        TEXT,
        """# AppWrappers from Python

`from mcad import Client` submits AppWrappers, waits for them, and asks why they wait. Everything is
typed; `AsyncClient` has the same methods for programs with an event loop.

This notebook was run on a cluster in one process, with one node of 8 CPUs. To run it yourself:

    mcad demo --serve --nodes 1
    export KUBECONFIG=mcad-demo.kubeconfig      # in the terminal of the notebook""",
    ),
    (
        CODE,
        """from mcad import Client, InvalidError, TimedOutError

client = Client()""",
    ),
    (
        TEXT,
        """## Submit

Objects are manifests as dicts, models of the `kubernetes` package, or paths of files. They become
the items of one AppWrapper, and start together or not at all. `priority` and `leaf` (of a quota
tree) are optional. A manifest of an AppWrapper, in either dialect, is submitted as it is.""",
    ),
    (
        CODE,
        """def job(name, cpu, pods):
    container = {
        "name": "main",
        "image": "busybox:1.36",
        "command": ["sleep", "3600"],
        "resources": {"requests": {"cpu": cpu}},
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": pod}},
    }


training = client.submit(job("training", "2", 3), name="training")
training.wait("running", timeout=60)""",
    ),
    (
        TEXT,
        """## Why does it wait?

The next one needs 4 CPUs, and 2 are free.""",
    ),
    (
        CODE,
        """evaluation = client.submit(job("evaluation", "1", 4), name="evaluation")
try:
    evaluation.wait("dispatched", timeout=1, on_reason=print)
except TimedOutError as error:
    print(error)""",
    ),
    (CODE, "client.queue()"),
    (CODE, "client.capacity()"),
    (
        TEXT,
        """Each remedy was tried on a copy of the dispatcher with the objects of this moment: with
that change it starts now, and nothing smaller of the same kind does.""",
    ),
    (CODE, "evaluation.why()"),
    (
        CODE,
        "[(remedy.kind, remedy.text) for remedy in evaluation.why().would_start]",
    ),
    (
        TEXT,
        """## What if?

Two copies of the dispatcher run their next cycles, one of them with the change. Nothing is changed
in the cluster.""",
    ),
    (CODE, 'client.what_if(without="training")'),
    (CODE, 'client.what_if(nodes=1, like="node-1").starts'),
    (
        TEXT,
        """## Errors

They are one sentence that names the field and says what to do. Nothing is created when a manifest
has a fault.""",
    ),
    (
        CODE,
        """try:
    client.submit(job("typo", "two", 1), name="typo")
except InvalidError as error:
    print(error)""",
    ),
    (
        TEXT,
        """## Hold, release, delete

What is held ends, keeps its place in line, and queues again when it is released. `events()` and
`logs()` tell what happened to it.""",
    ),
    (
        CODE,
        """training.hold()
evaluation.wait("running", timeout=60)
training.release()
next(one.reason for one in training.events() if one.subject == "AppWrapper/training")""",
    ),
    (
        CODE,
        """training.delete()
training.wait("deleted", timeout=60)""",
    ),
    (
        CODE,
        """evaluation.delete()
evaluation.wait("deleted", timeout=60)
client.close()""",
    ),
)


def executed(kubeconfig: Path) -> Json:
    """The notebook with the output of its cells."""
    names: Json = {}
    before = os.environ.get("KUBECONFIG")
    os.environ["KUBECONFIG"] = str(kubeconfig)
    try:
        cells = [_cell(number, *cell, names) for number, cell in enumerate(CELLS)]
    finally:
        if before is None:
            del os.environ["KUBECONFIG"]
        else:
            os.environ["KUBECONFIG"] = before
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cell(number: int, kind: str, source: str, names: Json) -> Json:
    cell: Json = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }
    if kind == CODE:
        count = sum(1 for other, _ in CELLS[: number + 1] if other == CODE)
        cell |= {"execution_count": count, "outputs": _outputs(source, count, names)}
    return cell


def _outputs(source: str, count: int, names: Json) -> list[Json]:
    """What is printed, and the value of the last line."""
    printed = StringIO()
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(tree, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    outputs: list[Json] = []
    if text := printed.getvalue():
        lines = text.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = [value._repr_html_()]
        outputs.append(
            {
                "data": data,
                "execution_count": count,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def text_of(notebook: Json) -> str:
    """The notebook as it is stored."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the notebook."""
    with tempfile.TemporaryDirectory() as folder, Embedded(Path(folder)).running() as cluster:
        NOTEBOOK.write_text(text_of(executed(cluster.kubeconfig)))


if __name__ == "__main__":
    main()
