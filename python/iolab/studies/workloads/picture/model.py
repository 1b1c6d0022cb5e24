# SPDX-License-Identifier: Apache-2.0
"""What a study says in `[workload]` of kind `picture`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, model_validator

from iolab.base.errors import FormatError, UsageError
from iolab.base.units import parse_fio_size, parse_fio_time
from iolab.hosts.base.options import Duration, OptionProblem, Options, Size, problems_error

from .bitmap import Bitmap, of_file, of_rows, of_text
from .plan import LEAD, TAIL, Canvas, Map

SHORTEST_SLOT = 0.01
"""Seconds: fio keeps the beginning of an I/O to the millisecond."""
BUSIEST = 0.7
"""Share of a column's time that a latency picture may plan to be busy; beyond it, a slower moment
would smear the columns."""
MOST_IOS = 1_000_000

_RANGES: dict[Map, tuple[str, str]] = {
    "offset": ("0", ""),
    "size": ("32k", "256k"),
    "latency": ("60us", "5ms"),
}
_ROOMS: dict[Map, int] = {"offset": 64 << 20, "size": 64 << 20, "latency": 128 << 20}
_STEPS: dict[Map, int] = {"offset": 4096, "size": 512, "latency": 4096}
_PER_PIXEL = 150
_FEWEST, _BUSY = 10, 0.5
"""A latency picture has as many I/Os as fill this share of its busiest column, and not fewer than
this of each pixel."""


class PictureOptions(Options):
    """`[workload]` of kind `picture`."""

    runtime: Annotated[
        Duration, Field(ge=2, description="length of every run: the picture's columns share it")
    ]
    text: Annotated[
        str | None, Field(description="what to write: printable ASCII, several lines with \\n")
    ] = None
    bitmap: Annotated[
        str | None, Field(description="what to draw: rows of '#' (lit) and '.' or blanks (dark)")
    ] = None
    bitmap_file: Annotated[
        str | None,
        Field(
            description="an image to draw (PBM, PGM, PPM or PNG), relative to the study: what is darker than half is lit"
        ),
    ] = None
    map: Annotated[Map, Field(description="the map that shows it")] = "offset"
    low: Annotated[
        str | int | float | None,
        Field(
            description="the value at the picture's bottom: a size, or a duration on the latency map; default: 0, 32k, 60us"
        ),
    ] = None
    high: Annotated[
        str | int | float | None,
        Field(description="the value at its top; default: the whole of size, 256k, 5ms"),
    ] = None
    size: Annotated[
        Size | None,
        Field(
            gt=0,
            description="room that the I/O goes to: the size of the file, or the first bytes of a device; default: 64m, of a "
            "latency picture 128m",
        ),
    ] = None
    bs: Annotated[
        Size | None,
        Field(
            ge=512,
            description="size of each I/O of an offset picture; of the others, what sizes and offsets are multiples of; "
            "default: 4k, of a size picture 512",
        ),
    ] = None
    op: Annotated[
        Literal["read", "write"], Field(description="what the I/Os are; a latency picture is read")
    ] = "read"
    direct: Annotated[
        bool | None,
        Field(
            description="past the page cache (O_DIRECT); default: yes, except for a latency picture, which reads from the cache"
        ),
    ] = None
    per_pixel: Annotated[
        int | None,
        Field(
            ge=1,
            le=10_000,
            description="I/Os of each lit pixel; default: 150; of a latency picture as many as half of the time allows, "
            "up to that",
        ),
    ] = None
    frame: Annotated[
        bool,
        Field(
            description="rules above and below (on the latency map below alone), so that no column is without I/O"
        ),
    ] = True
    inverse: Annotated[bool, Field(description="I/O everywhere but in the picture")] = False

    @model_validator(mode="before")
    @classmethod
    def _read_file(cls, given: Any, info: ValidationInfo) -> Any:
        """The image's pixels become `bitmap`, so that what was drawn is in the record whatever
        becomes of the file."""
        name = given.get("bitmap_file") if isinstance(given, dict) else None
        if not isinstance(name, str) or given.get("bitmap") is not None:
            return given
        try:
            return {
                **given,
                "bitmap": "\n".join(
                    of_file(Path((info.context or {}).get("directory", ".")) / name).rows
                ),
            }
        except (FormatError, ValueError) as error:
            raise problems_error(
                [
                    OptionProblem(
                        ("bitmap_file",), str(error), "a path that starts where the study file is"
                    )
                ]
            ) from None

    @model_validator(mode="after")
    def _check_picture(self) -> PictureOptions:
        problems = self._problems()
        if problems:
            raise problems_error(problems)
        return self

    @property
    def is_direct(self) -> bool:
        """Whether the I/O goes past the page cache."""
        return self.map != "latency" if self.direct is None else self.direct

    @property
    def ios_per_pixel(self) -> int:
        """I/Os of each lit pixel."""
        if self.per_pixel is not None:
            return self.per_pixel
        return (
            _PER_PIXEL
            if self.map != "latency"
            else max(_FEWEST, min(_PER_PIXEL, int(_BUSY / self.canvas().busiest(1))))
        )

    @property
    def room(self) -> int:
        """Bytes of the target that the I/O goes to."""
        return _ROOMS[self.map] if self.size is None else self.size

    @property
    def step(self) -> int:
        """What sizes and offsets are multiples of, in bytes."""
        return _STEPS[self.map] if self.bs is None else self.bs

    def canvas(self) -> Canvas:
        """The picture in its place; UsageError, ValueError where it can't be drawn."""
        bitmap = self._draw()
        low, high = (
            self._end(default if value is None else value)
            for value, default in zip((self.low, self.high), _RANGES[self.map], strict=True)
        )
        return Canvas(
            self.map, bitmap, low, high, LEAD, (self.runtime - LEAD - TAIL) / bitmap.width
        )

    def _end(self, given: str | int | float) -> float:
        """An end of the range, bytes or nanoseconds."""
        if given == "":
            return float(self.room)
        return (
            1e9 * parse_fio_time(given)
            if self.map == "latency"
            else float(parse_fio_size(str(given)))
        )

    def _draw(self) -> Bitmap:
        bitmap = of_text(self.text) if self.text is not None else of_rows(self.bitmap or "")
        if self.inverse:
            bitmap = bitmap.add_border().inverse()
        if not self.frame or self.inverse:
            return bitmap
        # a rule at the top of a latency picture would take the time that its letters need
        return bitmap.underline() if self.map == "latency" else bitmap.add_rules()

    def _problems(self) -> list[OptionProblem]:
        if (self.text is None) == (self.bitmap is None):
            both = self.text is not None
            return [
                OptionProblem(
                    ("text",),
                    "is set as well as a bitmap" if both else "is missing",
                    "leave one of them out"
                    if both
                    else "say what to draw: text, bitmap or bitmap_file",
                )
            ]
        try:
            self._draw()
        except ValueError as error:
            return [
                OptionProblem(
                    ("text" if self.text is not None else "bitmap",),
                    str(error),
                    "fewer or other pixels",
                )
            ]
        try:
            canvas = self.canvas()
        except (UsageError, ValueError) as error:
            return [
                OptionProblem(
                    ("low" if self.low is not None else "high",),
                    str(error),
                    "such as 32k, or 20us on the latency map",
                )
            ]
        return self._place_problems(canvas) + self._load_problems(canvas)

    def _place_problems(self, canvas: Canvas) -> list[OptionProblem]:
        problems = []
        if not 0 <= canvas.low < canvas.high or (self.map != "offset" and canvas.low <= 0):
            return [
                OptionProblem(
                    ("low",),
                    "is not below high",
                    "a range from low to high; on a logarithmic map above zero",
                )
            ]
        if self.step % 512:
            problems.append(
                OptionProblem(("bs",), f"is {self.step}", "a multiple of 512, such as 4k")
            )
        if self.map != "latency" and canvas.high > self.room:
            problems.append(
                OptionProblem(("high",), "is beyond size", "a larger size, or a lower range")
            )
        if self.map != "latency" and _without_multiple(canvas, self.step):
            problems.append(
                OptionProblem(
                    ("high",),
                    f"makes rows that hold no multiple of {self.step} bytes",
                    "a larger range, fewer rows of pixels, or a smaller bs",
                )
            )
        if self.room < 2 * self.step:
            problems.append(
                OptionProblem(("size",), f"is {self.room}", "room for two I/Os at least")
            )
        return problems

    def _load_problems(self, canvas: Canvas) -> list[OptionProblem]:
        problems = []
        if canvas.slot < SHORTEST_SLOT:
            least = canvas.bitmap.width * SHORTEST_SLOT + LEAD + TAIL
            problems.append(
                OptionProblem(
                    ("runtime",),
                    f"gives each of {canvas.bitmap.width} columns {1000 * canvas.slot:.1f} ms",
                    f"at least {least:.1f}s",
                )
            )
        if self.map == "latency":
            if self.op == "write" or self.is_direct:
                problems.append(
                    OptionProblem(
                        ("op" if self.op == "write" else "direct",),
                        "can't be set on the latency map",
                        "its I/Os are reads from the page cache: their latency follows their size",
                    )
                )
            busy = canvas.busiest(self.ios_per_pixel)
            if busy > BUSIEST:
                problems.append(
                    OptionProblem(
                        ("per_pixel",),
                        f"needs {100 * busy:.0f} % of a column's time",
                        f"at most {100 * BUSIEST:.0f} %: fewer I/Os per pixel, a longer runtime, or a lower high",
                    )
                )
        if len(canvas.bitmap.lit) * self.ios_per_pixel > MOST_IOS:
            problems.append(
                OptionProblem(
                    ("per_pixel",),
                    f"makes {len(canvas.bitmap.lit) * self.ios_per_pixel} I/Os",
                    f"at most {MOST_IOS}: fewer I/Os per pixel, or fewer pixels",
                )
            )
        return problems


def _without_multiple(canvas: Canvas, step: int) -> bool:
    """Whether some row holds no multiple of `step`."""
    return any(-(-low // step) * step >= high for low, high in pairwise(canvas.edges))
