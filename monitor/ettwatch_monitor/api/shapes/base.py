"""What all shapes share: the base, the body of an error, the time that was looked at."""

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Problem", "Shape", "Window"]


class Shape(BaseModel):
    """What all shapes are: fixed, and without fields that nobody knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Problem(Shape):
    """Every answer that is no success: 4xx and 5xx have this body."""

    error: str = Field(description="one line: what was wrong, and what to do")


class Window(Shape):
    """The time that was looked at: whole hours, from `from_us` until before `to_us`."""

    from_us: int
    to_us: int
