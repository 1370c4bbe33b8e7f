"""A fake agent that prints a recorded stream and records its arguments and environment.

Usage: python native_agent.py SCRIPT ARGUMENT..., where SCRIPT is JSON:

    streams      files to print, one for each turn; an argument `resume` or `--resume` means a later turn
    by_prompt    text of the prompt → file to print instead
    text         text to print instead
    bytes_of     length in bytes of a line to print first
    write        file in the working directory → text to write
    keep         file that gets the arguments, the environment, stdin and the settings files of HOME
    stderr       text to print on stderr
    hang         seconds to sleep after the stream
    child        file for the id of a sleeping process to start
    status       exit status
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def _settings_files(home: Path) -> dict[str, dict[str, object]]:
    return {
        str(one.relative_to(home)): {"text": one.read_text(errors="replace"), "mode": one.stat().st_mode & 0o777}
        for one in sorted(home.rglob("*"))
        if one.is_file()
    }


def main() -> int:
    script, arguments = json.loads(sys.argv[1]), sys.argv[2:]
    if arguments == ["--version"]:
        sys.stdout.write("agent-cli 0.163.0\n")
        return 0
    prompt = sys.stdin.read() if {"keep", "by_prompt"} & set(script) else ""
    if "keep" in script:
        kept = {"argv": arguments, "env": dict(os.environ), "stdin": prompt, "cwd": str(Path.cwd())}
        kept["files"] = _settings_files(Path(os.environ["HOME"]))
        with Path(script["keep"]).open("a") as file:
            file.write(json.dumps(kept) + "\n")
    if "child" in script:
        child = subprocess.Popen(["sleep", "600"])
        Path(script["child"]).write_text(str(child.pid))
    for name, text in script.get("write", {}).items():
        Path(name).write_text(text)
    out = sys.stdout.buffer
    if script.get("bytes_of"):
        out.write(b'{"type": "unknown", "text": "' + b"x" * script["bytes_of"] + b'"}\n')
    streams = [path for text, path in script.get("by_prompt", {}).items() if text in prompt] or script.get(
        "streams", []
    )
    later = len(streams) > 1 and bool({"resume", "--resume"} & set(arguments))
    out.write(script["text"].encode("latin-1") if "text" in script else Path(streams[later]).read_bytes())
    out.flush()
    sys.stderr.write(script.get("stderr", ""))
    sys.stderr.flush()
    time.sleep(script.get("hang", 0))
    return int(script.get("status", 0))


if __name__ == "__main__":
    sys.exit(main())
