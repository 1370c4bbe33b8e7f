"""`agentv serve`: a server to which a team pushes its runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from agentv.cli.lazy import Commands
from agentv.cli.values import Choice
from agentv.errors import ExitStatus, UsageError
from agentv.extensions.team.opening import DATA, database_address, open_team_database, team_database
from agentv.extensions.team.people import Members, Tokens, member_name
from agentv.extensions.team.remote import is_exposed
from agentv.registry.extensions import HOW_TO_GET, PAGES, lacking
from agentv.reports.text import one_line

F = TypeVar("F", bound=Callable[..., Any])
_ISSUER = "Treat PERSON as the subject that this OpenID provider gives, not as an email address."


def _projects_and_scopes(what: str, default: str, scopes: str) -> Callable[[F], F]:
    """Return a decorator that adds the options for projects and scopes of a new member or token."""

    def decorated(function: F) -> F:
        choice = Choice(("read", "push", "label", "admin"))
        shown: dict[str, Any] = {"show_default": True, "help": scopes}
        function = click.option("--scope", "scopes", type=choice, multiple=True, default=(default,), **shown)(function)
        function = click.option("--all-projects", is_flag=True, help="All projects instead of one.")(function)
        project = f"Project of the {what}; created if it is missing."
        return click.option("--project", metavar="PROJECT", help=project)(function)

    return decorated


@click.group("member", cls=Commands, epilog="Example: agentv serve member add ada@example.org --project support")
def member() -> None:
    """Add, list and remove people who sign in at the OpenID provider."""


@member.command("add", epilog="Example: agentv serve member add ada@example.org --project support --scope label")
@click.argument("person")
@_projects_and_scopes("member", "read", "What the member may do; repeatable. `admin` includes all else.")
@click.option("--issuer", metavar="URL", help=_ISSUER)
@click.pass_obj
def add(address: str, person: str, *, project: str | None, all_projects: bool, scopes: Any, issuer: str | None) -> int:
    """Let a person sign in, by email address. Adding the person again replaces the scopes in this project."""
    if all_projects == (project is not None):
        raise UsageError("a member has one project or all", "give either --project NAME or --all-projects")

    name = member_name(person, issuer)
    held = ("read", *scopes) if "admin" not in scopes and "read" not in scopes else scopes
    with team_database(address) as database:
        Members(database).add(name, project, held, "command line")
    where = f"project {project}" if project else "all projects"
    click.echo(f"{one_line(name.text)} in {where}: {', '.join(held)}.", err=True)
    return ExitStatus.PASSED


@member.command("list", epilog="Example: agentv serve member list")
@click.pass_obj
def list_members(address: str) -> int:
    """List members with their projects and scopes."""
    with team_database(address) as database:
        found = Members(database).all()
    for one in found:
        click.echo(f"{one_line(one.name.text)}  {one.project or '(all projects)'}  {','.join(one.scopes)}")
    return ExitStatus.PASSED


@member.command("remove", epilog="Example: agentv serve member remove ada@example.org")
@click.argument("person")
@click.option("--project", metavar="PROJECT", help="Remove the person from this project only.")
@click.option("--issuer", metavar="URL", help=_ISSUER)
@click.pass_obj
def remove(address: str, person: str, *, project: str | None, issuer: str | None) -> int:
    """Remove a person from every project. Open sessions lose access at once."""
    name = member_name(person, issuer)
    with team_database(address) as database:
        removed = Members(database).remove(name, project, "command line")
        everywhere = any(one.name == name and one.project is None for one in Members(database).all())
    where = f" of project {project}" if project else ""
    if not removed:
        raise UsageError(f"'{one_line(name.text)}' is not a member{where}", "agentv serve member list")
    click.echo(f"{one_line(name.text)} is removed{where}.", err=True)
    if everywhere:
        click.echo("The person is still a member of all projects.", err=True)
    return ExitStatus.PASSED


PORT = 4290


@click.group(
    "serve",
    cls=Commands,
    invoke_without_command=True,
    epilog="Example: agentv serve --database postgresql://agentv@db.example.org/agentv",
)
@click.option(
    "--database",
    metavar="ADDRESS",
    help="Database: postgresql://… or sqlite:///PATH (default: $AGENTV_DATABASE, else SQLite in the --data directory).",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Directory of this server: copies of runs, and the SQLite database (default: .agentv/server).",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Port to listen on.")
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="URL",
    help="Address that people open, such as https://evals.example.org; repeatable (default: where it listens).",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="IP address or network of a proxy, whose X-Forwarded-For tells senders apart; repeatable (default: none).",
)
@click.option(
    "--oidc-issuer", metavar="URL", help="OpenID provider that signs people in (default: they use an API token)."
)
@click.option(
    "--oidc-client-id",
    metavar="ID",
    help="How the provider knows this server. Its secret comes from $AGENTV_OIDC_CLIENT_SECRET.",
)
@click.pass_context
def group(context: click.Context, /, **given: Any) -> int:
    """Run a server that collects the runs of a team and shows them.

    Its pages are those of `agentv view`, for each project at /projects/NAME/. Laptops and CI send runs with `agentv
    push`. The database stores them; this server's copies of them are run directories: `agentv results`, `agentv
    compare` and the like work in DIRECTORY/PROJECT.

    Create a token for each machine with `agentv serve token create`. The server speaks plain HTTP: put a proxy with TLS
    before it if it listens on more than this machine. Press Ctrl-C to stop it.

    People sign in with an API token, or at an OpenID provider as members: `agentv serve member add`.
    """
    where = given["data"] or DATA
    context.obj = database_address(given["database"], where, os.environ)
    return ExitStatus.PASSED if context.invoked_subcommand else _serve(context.obj, where, given)


def _serve(address: str, data: Path, options: Mapping[str, Any]) -> int:
    from agentv.registry.fields import missing_extra

    if needs := lacking(PAGES, "project"):
        raise UsageError(f"agentv serve {needs}", HOW_TO_GET)
    missing = missing_extra("authlib", "server", "agentv serve")
    if missing is not None:
        raise UsageError(missing.message, missing.hint)
    from agentv.extensions.team.endpoints import TeamState
    from agentv.extensions.team.openid import opened_provider
    from agentv.extensions.team.serving import listening_socket, public_addresses, serve_team, trusted_proxies

    def problem(text: str) -> None:
        click.echo(f"warning: {one_line(text)}; trying again", err=True)

    host, port, given = options["host"], options["port"], options["addresses"]
    public_addresses(given, host, port)
    proxies = trusted_proxies(options["proxies"])
    openid = opened_provider(options["oidc_issuer"], options["oidc_client_id"], os.environ)
    listening = listening_socket(host, port)
    database, applied = open_team_database(address)
    addresses = public_addresses(given, host, listening.getsockname()[1])

    def started() -> None:
        for step in applied:
            click.echo(f"database: applied migration {step}", err=True)
        click.echo(f"{addresses[0]}/")
        for one in filter(is_exposed, addresses):
            click.echo(f"warning: {one} is http://: tokens, sessions and runs are not encrypted on their way", err=True)
        if openid is not None:
            from agentv.extensions.team.sign_in import CALLBACK

            click.echo(f"Sign-in: {openid.issuer}; redirect URI to register there: {addresses[0]}{CALLBACK}", err=True)
        click.echo(f"Copies of runs: {data}. Press Ctrl-C to stop.", err=True)

    serve_team(TeamState(database, addresses, openid, proxies), data, listening, started, problem)
    return ExitStatus.PASSED


group.add_command(member)


@group.group("token", cls=Commands, epilog="Example: agentv serve token create ci --project support")
def token() -> None:
    """Create, list and revoke API tokens."""


@token.command("create", epilog="Example: agentv serve token create ci --project support --days 90")
@click.argument("name")
@_projects_and_scopes("token", "push", "What the token allows; repeatable.")
@click.option("--days", type=click.IntRange(1, 36_500), metavar="N", help="Days until it expires (default: never).")
@click.pass_obj
def create(address: str, name: str, *, project: str | None, all_projects: bool, scopes: Any, days: int | None) -> int:
    """Create a token and print it. It is shown only this once: the database has only its hash."""
    if all_projects == (project is not None):
        raise UsageError("a token is for one project or for all", "give either --project NAME or --all-projects")

    with team_database(address) as database:
        text, made = Tokens(database).create(name, project, scopes, days, "command line")
    until = f"until {made.expires}" if made.expires else "until it is revoked"
    where = f"project {project}" if project else "all projects"
    click.echo(text)
    click.echo(f"Token {made.id} for {where}: {', '.join(made.scopes)}; valid {until}.", err=True)
    click.echo("Set it as AGENTV_TOKEN where runs are pushed. It is not shown again.", err=True)
    return ExitStatus.PASSED


@token.command("list", epilog="Example: agentv serve token list")
@click.pass_obj
def list_tokens(address: str) -> int:
    """List tokens, without their texts."""
    with team_database(address) as database:
        found = Tokens(database).all()
    for one in found:
        state = one.problem or (f"expires {one.expires}" if one.expires else "valid")
        of = one.project or "(all projects)"
        click.echo(f"{one.id}  {of}  {','.join(one.scopes)}  {one_line(one.name)}  {state}")
    return ExitStatus.PASSED


@token.command("revoke", epilog="Example: agentv serve token revoke 1f3a9c02")
@click.argument("token_id", metavar="ID")
@click.pass_obj
def revoke(address: str, token_id: str) -> int:
    """Make a token invalid at once. `agentv serve token list` shows the ids."""
    with team_database(address) as database:
        revoked = Tokens(database).revoke(token_id, "command line")
    if not revoked:
        raise UsageError(f"there is no valid token '{token_id}'", "agentv serve token list")
    click.echo(f"Token {token_id} is revoked.", err=True)
    return ExitStatus.PASSED
