"""The notebook of the examples in a real kernel: tables, progress, and an interrupt."""

import warnings
from pathlib import Path

from needs import needs

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "support.ipynb"

INTERRUPTED = """
import os, signal
asked = []

def interrupts(prompt):
    asked.append(prompt)
    if len(asked) == 3:
        os.kill(os.getpid(), signal.SIGINT)
        while len(asked) == 3 and not stopped.is_set():
            stopped.wait(0.01)
    return prompt

import threading, agentv.app.running.drive as drive
stopped = threading.Event()
request = drive.StopRequests.request
drive.StopRequests.request = lambda self: (request(self), stopped.set())

tests = [{"id": f"case-{n}", "input": "a", "assert": [{"contains": "a"}]} for n in range(500)]
many = {"name": "many", "tests": tests}
try:
    agentv.evaluate(many, target=interrupts, workers=1, out="interrupted")
except KeyboardInterrupt as error:
    print("stopped:", error)
rows = open("interrupted/index.jsonl").read().splitlines()
print(len(rows), len(asked), os.path.exists("interrupted/summary.json"))
"""

MANY = """
from contextvars import ContextVar

session = ContextVar("session", default="none")
session.set("mine")

def plain(prompt):
    print("asked")
    return session.get()

async def coroutine(prompt):
    return session.get()

case = {"id": "a", "input": "x", "assert": [{"equals": "mine"}]}
[agentv.evaluate({"name": "n", "tests": [case]}, target=one).passed for one in (plain, coroutine)]
"""


def outputs(cell, kind: str) -> list[str]:
    return ["".join(one["data"][kind]) for one in cell.outputs if kind in one.get("data", {})]


@needs("ipykernel", "nbclient", "pandas")
def test_a_notebook_evaluates_shows_tables_and_can_be_interrupted(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nbclient
        import nbformat
    (tmp_path / ".git").mkdir()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    more = [nbformat.v4.new_code_cell(text) for text in (INTERRUPTED, MANY)]
    notebook.cells += more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from the client's own libraries
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    _, run, frame, awaited, stopped, variables = code
    progress, table = outputs(run, "text/html")
    assert progress == "<pre>3/3 trials: 2 passed, 1 failed, 0 errored</pre>"  # one line, in its final state
    assert table.index("warranty") < table.index("shipping")
    assert "<table" in outputs(frame, "text/html")[0]
    assert outputs(awaited, "text/plain")[-1] == "0.6666666666666666"
    said = "".join(one["text"] for one in stopped.outputs if one.output_type == "stream")
    assert "stopped: interrupted; finished trials are saved. Resume with evaluate(…, resume='" in said
    assert said.splitlines()[-1] == "3 3 True"
    assert outputs(variables, "text/plain")[-1] == "[True, True]"
    assert not any("never awaited" in str(one) for cell in code for one in cell.outputs)
