"""`agentv serve member`: people who may sign in."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.lazy import Commands
from agentv.cli.options.expected import Choice
from agentv.errors import ExitStatus, UsageError

_ISSUER = "Treat PERSON as the subject that this OpenID provider gives, not as an email address."


@click.group("member", cls=Commands, epilog="Example: agentv serve member add ada@example.org --project support")
def member() -> None:
    """Add, list and remove people who sign in at the OpenID provider."""


@member.command("add", epilog="Example: agentv serve member add ada@example.org --project support --scope label")
@click.argument("person")
@click.option("--project", metavar="PROJECT", help="Project of the member; created if it is missing.")
@click.option("--all-projects", is_flag=True, help="Member of every project.")
@click.option(
    "--scope",
    "scopes",
    type=Choice(("read", "label", "push", "admin")),
    multiple=True,
    default=("read",),
    show_default=True,
    help="What the member may do; repeatable. `admin` includes all else.",
)
@click.option("--issuer", metavar="URL", help=_ISSUER)
@click.pass_obj
def add(address: str, person: str, *, project: str | None, all_projects: bool, scopes: Any, issuer: str | None) -> int:
    """Let a person sign in, by email address. Adding the person again replaces the scopes in this project."""
    if all_projects == (project is not None):
        raise UsageError("a member has one project or all", "give either --project NAME or --all-projects")
    from agentv.extensions.team.store.members import Members, member_name
    from agentv.extensions.team.store.opening import team_database
    from agentv.reports.text.escaping import one_line

    name = member_name(person, issuer)
    held = ("read", *scopes) if "admin" not in scopes and "read" not in scopes else scopes
    with team_database(address) as database:
        done = Members(database).add(name, project, held, "command line")
    where = f"project {project}" if project else "all projects"
    click.echo(f"{one_line(name.text)} in {where}: {', '.join(held)} ({done}).", err=True)
    return ExitStatus.PASSED


@member.command("list", epilog="Example: agentv serve member list")
@click.pass_obj
def list_members(address: str) -> int:
    """List members with their projects and scopes."""
    from agentv.extensions.team.store.members import Members
    from agentv.extensions.team.store.opening import team_database
    from agentv.reports.text.escaping import one_line

    with team_database(address) as database:
        found = Members(database).all()
    for one in found:
        click.echo(f"{one_line(one.name.text)}  {one.project or '(all projects)'}  {','.join(one.scopes)}")
    if not found:
        click.echo("no members; add one with 'agentv serve member add'", err=True)
    return ExitStatus.PASSED


@member.command("remove", epilog="Example: agentv serve member remove ada@example.org")
@click.argument("person")
@click.option("--project", metavar="PROJECT", help="Remove the person from this project only.")
@click.option("--issuer", metavar="URL", help=_ISSUER)
@click.pass_obj
def remove(address: str, person: str, *, project: str | None, issuer: str | None) -> int:
    """Remove a person from every project. Open sessions lose access at once."""
    from agentv.extensions.team.store.members import Members, member_name
    from agentv.extensions.team.store.opening import team_database
    from agentv.reports.text.escaping import one_line

    name = member_name(person, issuer)
    with team_database(address) as database:
        removed = Members(database).remove(name, None if project is None else [project], "command line")
        left = [one.project for one in Members(database).all() if one.name == name]
    where = f" of project {project}" if project else ""
    if not removed:
        hint = "a member of all projects: leave --project out" if None in left else "agentv serve member list"
        raise UsageError(f"'{one_line(name.text)}' is not a member{where}", hint)
    click.echo(f"{one_line(name.text)} is removed{where}.", err=True)
    if None in left:
        click.echo("The person is still a member of all projects.", err=True)
    return ExitStatus.PASSED
