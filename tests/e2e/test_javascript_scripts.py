"""`script` commands that start node or bun: they find the SDK, and a crash shows the error's own lines."""

import shutil

import pytest

from doubles.runtimes import RUNTIMES, path_with

GRADER = """
import { defineScriptGrader } from '%s';

export default defineScriptGrader((ctx) => ({
  score: ctx.output === 'hi' ? 1 : 0,
  assertions: [{ text: `saw ${ctx.output}`, passed: true }],
}));
"""
SUITE = """
target: {name: it, provider: mock, response: hi}
tests:
  - {id: a, input: x, assert: [{script: %s}]}
"""


@pytest.fixture(params=RUNTIMES)
def runtime(request, tmp_path_factory) -> tuple[str, str]:
    """Return a runtime's name and a PATH that contains only it and a shell."""
    path = path_with(tmp_path_factory.mktemp("path") / "bin", request.param)["PATH"]
    return request.param, f"{path}:/bin"


@pytest.mark.parametrize("command", ["[{}, grader.mjs]", "{} grader.mjs", "[sh, -c, cd . && {} grader.mjs]"])
def test_a_script_finds_the_sdk(project, runtime, command):
    program, path = runtime
    project.write_files({"grader.mjs": GRADER % "@agentv/sdk", "a.eval.yaml": SUITE % command.format(program)})
    project.run("eval", "a.eval.yaml", env={"PATH": path}, status=0)
    assert project.rows()[0]["scores"][0]["assertions"][0]["text"] == "saw hi"


@pytest.mark.parametrize("command", ["./grader.mts", "[./grader.mts]", "./run.sh", "cd . && exec ./run.sh"])
def test_a_program_that_starts_a_runtime_finds_the_sdk(project, runtime, command):
    program, path = runtime
    grader = project.write("grader.mts", f"#!{shutil.which(program, path=path)}\n{GRADER.strip() % '@agentv/sdk'}")
    script = project.write("run.sh", f"#!/bin/sh\nexec {program} grader.mts\n")
    for file in (grader, script):
        file.chmod(0o755)
    project.write("a.eval.yaml", SUITE % command)
    project.run("eval", "a.eval.yaml", env={"PATH": path}, status=0)


@pytest.mark.parametrize("package", ["commonjs", "module"])
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("grader.ts", GRADER % "@agentv/sdk"),
        ("grader.js", GRADER % "@agentv/sdk"),
        ("grader.js", "require('@agentv/sdk').defineScriptGrader(() => true);"),
    ],
)
def test_the_syntax_of_a_script_decides_its_format(project, runtime, package, name, source):
    program, path = runtime
    project.write("package.json", f'{{"type": "{package}"}}')
    project.write(name, source)
    project.write("a.eval.yaml", SUITE % f"[{program}, {name}]")
    project.run("eval", "a.eval.yaml", env={"PATH": path}, status=0)
