"""What can be wrong."""

from __future__ import annotations


class ScenarioError(ValueError):
    """A scenario, or an override, was refused. Its text is that of the command.

    ``place`` says where (``"file.toml:3:8"``, ``"--set network.nodes=0"``), ``field`` which key, ``value`` what
    was found there, ``allowed`` what would be right. ``file``, ``line`` and ``column`` are set where it is a file.
    """

    def __init__(
        self,
        text: str,
        place: str,
        field: str,
        value: str | None,
        problem: str,
        allowed: str | None,
        position: tuple[str | None, int | None, int | None],
    ) -> None:
        super().__init__(text)
        self.place = place
        self.field = field
        self.value = value
        self.problem = problem
        self.allowed = allowed
        self.file, self.line, self.column = position

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[object, ...]]:
        position = (self.file, self.line, self.column)
        facts = (self.args[0], self.place, self.field, self.value, self.problem, self.allowed, position)
        return (type(self), facts)


class PlacementError(RuntimeError):
    """The scenario is right, but its world could not be drawn: no connected placement was found."""
