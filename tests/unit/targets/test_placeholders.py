import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.registry.fields import Command
from agentv.targets.placeholders import NAMES, command_issues, plan_command, words_in_braces

HOSTILE = "'; touch pwned; $(touch pwned) `touch pwned` \" \\ \n * ~ {FILES} {{ x }} %s -n"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tool {PROMPT} --id={EVAL_ID}", [("PROMPT", "bare"), ("EVAL_ID", "bare")]),
        ("tool '{PROMPT}'", [("PROMPT", "single quotes")]),
        ('tool "{PROMPT}"', [("PROMPT", "double quotes")]),
        ("tool 'a'{PROMPT}'b'", [("PROMPT", "bare")]),
        ('tool "it\'s" {PROMPT}', [("PROMPT", "bare")]),
        ('tool \\" {PROMPT} \\"', [("PROMPT", "bare")]),
        ('tool "a \\" {PROMPT}"', [("PROMPT", "double quotes")]),
        ("tool \\{PROMPT}", []),
        ("tool $'it\\'s {PROMPT}' {PROMPT}", [("PROMPT", "single quotes"), ("PROMPT", "bare")]),
        ('x="$(tool {PROMPT} "{EVAL_ID}")"', [("PROMPT", "bare"), ("EVAL_ID", "double quotes")]),
        ("echo `tool {PROMPT}`", [("PROMPT", "bare")]),
        ('echo "`tool {PROMPT}`" "{PROMPT}"', [("PROMPT", "bare"), ("PROMPT", "double quotes")]),
        ("echo $(( {ATTEMPT} + (1 + {ATTEMPT}) )) {PROMPT}", [("ATTEMPT", "arithmetic")] * 2 + [("PROMPT", "bare")]),
        ("echo ${X:-{PROMPT}} {PROMPT}", [("PROMPT", "${…}"), ("PROMPT", "bare")]),
        ('echo "${X:-it\'s {PROMPT}}" {PROMPT}', [("PROMPT", "quoted ${…}"), ("PROMPT", "bare")]),
        ("echo ${PROMPT}", [("PROMPT", "a shell variable")]),
        ('echo "${PROMPT}"', [("PROMPT", "a shell variable")]),
        ("(cd x; (tool {PROMPT})) && { tool {PROMPT}; }", [("PROMPT", "bare")] * 2),
        ("# don't {PROMPT}\ntool {PROMPT} # it's\necho {PROMPT}", [("PROMPT", "bare")] * 2),
        ("echo ${X#a} '{PROMPT}'", [("PROMPT", "single quotes")]),
        (
            "cat <<EOF; tool {PROMPT}\nit's {PROMPT}\nEOF\ntool {PROMPT}",
            [("PROMPT", "bare"), ("PROMPT", "a here-document"), ("PROMPT", "bare")],
        ),
        ("cat <<-'EOF'\n\t{PROMPT}\n\tEOF\ntool {PROMPT}", [("PROMPT", "a here-document"), ("PROMPT", "bare")]),
        ("cat <<EOF\nnever ends {PROMPT}", [("PROMPT", "a here-document")]),
        ("cat <<<{PROMPT}\ntool {PROMPT}", [("PROMPT", "bare")] * 2),
        ('curl -d \'{"a": {"b": 1}}\' {PROMPT}', [("PROMPT", "bare")]),
        ("tool 'never closed {PROMPT}", [("PROMPT", "single quotes")]),
        ("a ) ) } {PROMPT}", [("PROMPT", "bare")]),
    ],
)
def test_where_a_placeholder_stands(line, found):
    assert [(found.name, found.where) for found in words_in_braces(line)] == found


@given(st.text(alphabet="{}PROMT'\"`$()\\#<EOF \n\t-a:", max_size=60))
def test_any_line_can_be_read(line):
    for found in words_in_braces(line):
        assert line[found.begin : found.end].strip("${}") == found.name


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("tool '{PROMPT}'", "quoted-placeholder", "{PROMPT} is inside single quotes"),
        ('tool "Q: {PROMPT}"', "quoted-placeholder", "{PROMPT} is inside double quotes"),
        ("echo $(({ATTEMPT}))", "quoted-placeholder", "{ATTEMPT} is inside arithmetic"),
        ("tool {PROMPTS}", "unknown-placeholder", "no placeholder {PROMPTS}"),
        ("tool '{EVALID}'", "unknown-placeholder", "no placeholder {EVALID}"),
        ("tool ${PROMPT}", "shell-variable", "${PROMPT} is a shell variable; the placeholder is {PROMPT}"),
        ("sh -c {PROMPT}", "placeholder-in-script", "{PROMPT} after '-c' would be run as code"),
        ("eval {PROMPT}", "placeholder-in-script", "{PROMPT} after 'eval' would be run as code"),
        ("A=1 eval tool={PROMPT}", "placeholder-in-script", "{PROMPT} after 'eval' would be run as code"),
        ("x=$(sh -c {PROMPT})", "placeholder-in-script", "{PROMPT} after '-c' would be run as code"),
        ("bash -c -l {PROMPT}", "placeholder-in-script", "{PROMPT} after '-c' would be run as code"),
        ("cat | xargs -I% sh -c {PROMPT}", "placeholder-in-script", "{PROMPT} after '-c' would be run as code"),
        ("ssh -p 22 host agent {PROMPT}", "placeholder-in-script", "{PROMPT} after 'ssh' would be run as code"),
        ("su -c {PROMPT} nobody", "placeholder-in-script", "{PROMPT} after '-c' would be run as code"),
    ],
)
def test_what_is_wrong_in_a_line(line, code, says):
    [fault] = command_issues(Command(shell=line))
    assert (fault.path, fault.code, fault.message) == (("command",), code, says)
    assert fault.warning is (code == "shell-variable")


@pytest.mark.parametrize("name", NAMES)
def test_a_misspelt_name_gets_the_nearest(name):
    [fault] = command_issues(Command(argv=("tool", f"{{{name}X}}")))
    assert (fault.path, fault.hint) == (("command", 1), f"did you mean '{{{name}}}'?")


@pytest.mark.parametrize(
    "line",
    [
        "tool {PROMPT} {FILES} >{OUTPUT_FILE}",
        "curl -d '{\"a\": {B}}' {URL} ${HOME}",
        "bash -e script.sh {PROMPT}",
        "sh -c 'tool \"$1\"' sh {PROMPT}",
        "python -m tool -c {PROMPT}",
        "eval x; tool {PROMPT}",
        "ssh host agent <{PROMPT_FILE} 2>&1 > {OUTPUT_FILE}",
        "tool --by ssh {PROMPT}",
        "bash -c 'echo done > {OUTPUT_FILE}'",
        'tool --out="{OUTPUT_FILE}" < "{PROMPT_FILE}"',
    ],
)
def test_what_is_right_in_a_line(line):
    assert list(command_issues(Command(shell=line))) == []


@pytest.mark.parametrize(
    ("argv", "at"),
    [
        (("sh", "-c", "tool {PROMPT}"), 2),
        (("docker", "exec", "box", "sh", "-c", "{PROMPT}"), 5),
        (("python3", "-c", "print('{PROMPT}')"), 2),
        (("node", "--eval", "f(`{PROMPT}`)"), 2),
        (("ssh", "host", "agent", "{PROMPT}"), 3),
        (("xargs", "sh", "-c", "--", "{PROMPT}"), 4),
        (("bash", "-c", "{PROMPT_FILE}"), 2),
    ],
)
def test_a_list_may_not_put_a_value_into_code(argv, at):
    [fault] = command_issues(Command(argv=argv))
    assert (fault.path, fault.code) == (("command", at), "placeholder-in-script")


@pytest.mark.parametrize(
    "argv",
    [
        ("tool", "{PROMPT}", "--file={FILES}", '{"a": "{PROMPT}"}'),
        ("sh", "-c", 'tool "$1"', "sh", "{PROMPT}"),
        ("python", "-m", "tool", "-c", "{PROMPT}"),
        ("bash", "-e", "script.sh", "{PROMPT}"),
        ("{URL}", "{X}"),
        ("bash", "-c", "echo done > {OUTPUT_FILE}"),
    ],
)
def test_what_is_right_in_a_list(argv):
    assert list(command_issues(Command(argv=argv))) == []


VALUES = {"PROMPT": HOSTILE, "EVAL_ID": "{PROMPT}"}


@pytest.mark.parametrize(
    ("files", "words"), [((), ["tool", "end"]), (("a b", "c"), ["tool", "a b", "c", "-f=a b", "-f=c", "end"])]
)
def test_files_become_a_word_each(files, words):
    plan = plan_command(Command(argv=("tool", "{FILES}", "-f={FILES}", "end")))
    assert list(plan.filled({}, files)[0].argv) == words


@pytest.mark.parametrize("shell", [name for name in ("sh", "dash", "bash", "zsh", "ksh") if shutil.which(name)])
@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("printf %s {PROMPT}", HOSTILE),
        ('printf %s "$(printf %s {PROMPT})"', HOSTILE),
        ('printf %s "`printf %s {PROMPT}`"', HOSTILE),
        ('x={PROMPT}; printf %s "$x"', HOSTILE),
        ("f() { printf %s {PROMPT}; }; f", HOSTILE),
        ("printf '<%s>' {FILES}", "<a b><$(touch pwned)><*>"),
        ("printf '<%s>' {EVAL_ID}", "<{PROMPT}>"),
        ("printf %s \\{PROMPT}", "{PROMPT}"),
        ("true {PROMPT} # don't\nprintf %s {EVAL_ID}", "{PROMPT}"),
    ],
)
def test_no_value_is_ever_run(tmp_path, shell, line, printed):
    assert list(command_issues(Command(shell=line))) == []
    plan = plan_command(Command(shell=line))
    command, env = plan.filled({name: VALUES[name] for name in plan.uses - {"FILES"}}, ("a b", "$(touch pwned)", "*"))
    argv = (shell, *command.argv[1:]) if command.argv else (shell, "-c", command.shell)
    ended = subprocess.run(
        argv, capture_output=True, text=True, check=True, cwd=tmp_path, env={"PATH": os.environ["PATH"], **env}
    )
    assert ended.stdout == printed
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=30)
@given(st.text(alphabet="ab '\"`$\\(){}[]*?~#;&|<>=!%-\n\t\r\x01é€😀", max_size=40))
def test_any_prompt_arrives_as_it_is(prompt):
    plan = plan_command(Command(shell='printf %s {PROMPT} "$(printf %s. {PROMPT})"'))
    command, env = plan.filled({"PROMPT": prompt}, ())
    ended = subprocess.run(command.argv, capture_output=True, check=True, env={"PATH": os.environ["PATH"], **env})
    assert ended.stdout.decode() == prompt + prompt + "."
