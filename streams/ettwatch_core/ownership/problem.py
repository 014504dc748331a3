"""What is wrong with an ownership file."""

from ettwatch_core.nodes import Problem

__all__ = ["OwnersError"]


class OwnersError(ValueError):
    """An ownership file is wrong; one line of text for each problem, each with file and line number.

    Attributes:
        source: The file.
        problems: All of them, by line.
    """

    def __init__(self, source: str, problems: list[Problem]) -> None:
        super().__init__("\n".join(f"{source}:{line}: {reason}" for line, reason in problems))
        self.source = source
        self.problems = problems
