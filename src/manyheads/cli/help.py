"""`help`: the help of a verb."""

from __future__ import annotations

import click

from manyheads.cli.verbs import verb


@verb("help")
@click.argument("verbs", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help_of(context: click.Context, verbs: tuple[str, ...]) -> None:
    """Show the help of a command, as its option --help does; without COMMAND, the list of all commands."""
    context = context.find_root()
    for name in verbs:
        if not isinstance(context.command, click.Group):
            raise click.UsageError(f"there is no command {name} below {context.command_path}.", context)
        _, command, _ = context.command.resolve_command(context, [name])
        assert command is not None
        context = click.Context(command, info_name=name, parent=context)
    click.echo(context.get_help())


VERBS = {"help": help_of}
