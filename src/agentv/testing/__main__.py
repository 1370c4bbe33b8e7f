"""`python -m agentv.testing`: a model server for trying agentv without an API key."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from threading import Event

import click

from agentv.testing.agent_script import read_script
from agentv.testing.routes import ADDRESSES
from agentv.testing.server import ModelServer
from agentv.testing.steps import Answer, Script


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 chooses a free one.")
@click.option("--delay-ms", type=click.FloatRange(0), default=0.0, help="Milliseconds before each answer.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Requests per second to accept; others get 429.")
@click.option("--text", help="Text of every answer. Default: the text of the call's last message.")
@click.option(
    "--script",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Steps for coding agents, in YAML or JSON.",
)
def main(port: int, delay_ms: float, rate: float | None, text: str | None, script: Path | None) -> None:
    """Speak the protocols of OpenAI, Anthropic, Gemini, Azure and Ollama on 127.0.0.1, until Ctrl-C."""
    if text is not None and script is not None:
        raise click.UsageError("--text and --script exclude each other")
    reply: Script = Answer(text) if text is not None else lambda call: call.prompt
    if script is not None:
        try:
            reply = read_script(script)
        except OSError as error:
            raise click.ClickException(f"cannot read {script}: {error.strerror or error}") from error
        except ValueError as error:
            raise click.ClickException(f"{script}: {error}") from error
    server = ModelServer(reply, rate=rate, delay_s=delay_ms / 1000, keep=0)
    try:
        server.start(port)
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror or error}") from error
    ended = Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # before printing: a reader of the addresses may send a signal
        signal.signal(number, lambda *_: ended.set())
    for name in ADDRESSES:
        click.echo(f"{name:<9} {getattr(server, name)}")
    sys.stdout.flush()  # a parent process waits for the addresses
    ended.wait()
    server.stop()


if __name__ == "__main__":
    main(prog_name="python -m agentv.testing")
