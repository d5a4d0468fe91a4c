"""The table of tools: their names, what an agent is told of them, their arguments, and the functions that do them.

A new tool is a class of arguments, a row in `TOOLS`, and a function in a module that the process of a call loads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vip.errors import UsageError, did_you_mean, validation_message
from vip.untrusted import one_line

MOST_KEYFRAMES, MOST_TOKENS, MOST_WORDS = 60, 16_000, 400
MOST_SOURCES, MOST_MOMENTS, MOST_ASKED = 20, 20, 24

Video = Annotated[
    str, Field(description="Path of a video file or of a run folder inside the roots, or the name of a run that keyframes returned.")
]
Model = Annotated[str, Field(max_length=200, description="The model that will see the pictures; it says how tokens are counted.")]
Tokens = Annotated[int, Field(ge=50, le=MOST_TOKENS, description="What all pictures may cost together.")]
Time = Annotated[str, Field(max_length=40, description="Seconds (75.5), a clock (1:15) or units (1m15s).")]
DEFAULT_MODEL = "gpt-5.4-mini"


class Arguments(BaseModel):
    """Base of the arguments of a tool: unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def named(self) -> tuple[str, ...]:
        """The paths and runs in them."""
        return ()


class VideoArguments(Arguments):
    """Base of the arguments of a tool that looks at one video."""

    video: Video

    @property
    def named(self) -> tuple[str, ...]:
        return (self.video,)


class SourcesArguments(Arguments):
    """Base of the arguments of a tool that looks for something in many videos."""

    sources: Annotated[
        tuple[Annotated[str, Field(max_length=4096)], ...],
        Field(
            max_length=MOST_SOURCES,
            description="Video files, run folders, folders of runs and data sets inside the roots, and names of runs that keyframes "
            "returned. None: all runs and data sets.",
        ),
    ] = ()

    @property
    def named(self) -> tuple[str, ...]:
        return self.sources


class KeyframesArguments(VideoArguments):
    count: Annotated[
        int | None,
        Field(ge=1, le=MOST_KEYFRAMES, description="How many keyframes; by default as many as there are different pictures."),
    ] = None
    start: Time | None = None
    end: Time | None = None
    tokens: Tokens = 2000
    model: Model = DEFAULT_MODEL


class SheetArguments(VideoArguments):
    tokens: Tokens = 4000
    model: Model = DEFAULT_MODEL


class FrameArguments(VideoArguments):
    number: Annotated[int | None, Field(ge=1, description="Of the keyframe, as keyframes lists them.")] = None
    time: Annotated[Time | None, Field(description="The keyframe nearest to this time; instead of a number.")] = None
    side: Annotated[int, Field(ge=64, le=2048, description="Longest side of the picture in pixels.")] = 1024


class DescribeArguments(VideoArguments):
    pass


class WordsArguments(VideoArguments):
    start: Time | None = None
    end: Time | None = None
    pictures: Annotated[
        bool, Field(description="Also the text that stands in the keyframes. Of a video that nobody read yet it takes seconds a keyframe.")
    ] = False


class SearchArguments(SourcesArguments):
    query: Annotated[str, Field(max_length=300, description="What is seen or said; words in double quotes stay side by side.")]
    moments: Annotated[int, Field(ge=1, le=MOST_MOMENTS, description="At most this many.")] = 5


class AskArguments(SourcesArguments):
    question: Annotated[str, Field(max_length=1000)]
    frames: Annotated[int, Field(ge=1, le=MOST_ASKED, description="How many keyframes are looked at, one request each.")] = 8
    pictures: Annotated[bool, Field(description="Show the cited keyframes too.")] = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as agents see it, and where its function is."""

    name: str
    description: str
    arguments: type[Arguments]
    function: str
    """`module:function`, called as `function(arguments, workshop)`; only the process of a call loads it."""
    is_paid: bool = False
    """It may ask an engine that costs money, so that one call at a time does."""


TOOLS = (
    Tool(
        "keyframes",
        "Choose the keyframes of a video and show them on a contact sheet with their times burnt in. Start here. "
        "Returns the name of a run, which the other tools take, and the number and time of each keyframe.",
        KeyframesArguments,
        "vip.mcp.pictures:keyframes",
    ),
    Tool(
        "sheet",
        "Show the keyframes of a run or a video again on contact sheets, under a budget of tokens.",
        SheetArguments,
        "vip.mcp.pictures:sheet",
    ),
    Tool(
        "frame",
        "Show one keyframe as a single picture, by its number or the nearest time. Use it where a cell of the sheet is too small.",
        FrameArguments,
        "vip.mcp.pictures:frame",
    ),
    Tool(
        "describe",
        "Describe each keyframe in words: a dense caption, and focus, action, mood, objects and setting. "
        "The server's engine does it within the server's budget of dollars.",
        DescribeArguments,
        "vip.mcp.texts:describe",
        is_paid=True,
    ),
    Tool(
        "words",
        "Read the subtitles in the video file or beside it, with their times; of all, or of those between start and end. "
        "Of a run folder it gives the words that the run has; those with transcribed_by are speech that a program wrote "
        "down, and may be misheard. "
        "With pictures also the text in the keyframes, such as slides, as a program read it.",
        WordsArguments,
        "vip.mcp.texts:words",
    ),
    Tool(
        "search",
        "Find moments by what is said and described in many videos, best first, each with its video, times and words. "
        "Look at one with frame.",
        SearchArguments,
        "vip.mcp.questions:search",
    ),
    Tool(
        "ask",
        "Answer a question about one video or many, with citations [video@mm:ss] of keyframes that were looked at; an answer that they "
        "do not support is marked. The server's engine does it within the server's budget of dollars; without one, moments are listed.",
        AskArguments,
        "vip.mcp.questions:ask",
        is_paid=True,
    ),
)


def find_tool(name: str) -> Tool:
    """Return the tool of this name.

    Raises:
        UsageError: there is none.
    """
    by_name = {tool.name: tool for tool in TOOLS}
    if name not in by_name:
        raise UsageError(f"There is no tool {one_line(name[:80])}.{did_you_mean(name[:80], by_name)}")
    return by_name[name]


def check_arguments(tool: Tool, given: object) -> Arguments:
    """Return the arguments of a call.

    Raises:
        UsageError: one is missing, unknown or wrong.
    """
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as exc:
        problem = exc.errors()[0]
        name = one_line(".".join(map(str, problem["loc"]))[:80])
        raise UsageError(f"{name or tool.name}: {validation_message(problem)}.") from exc
