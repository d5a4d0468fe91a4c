"""The figures of a data card, in words and tables that Markdown and the page share.

In: a `DataCard`, all that is known of a batch. Out: facts and tables. Texts of hosts and lists among them are as they came and not
yet escaped.
"""

from __future__ import annotations

from dataclasses import dataclass

from vip.corpus.card.counts import DataSetCounts
from vip.corpus.inputs.sampling import Distribution
from vip.corpus.retries import RULES
from vip.corpus.settings import BatchConfig
from vip.corpus.status import BatchStatus, duration
from vip.dataset.items import UNKNOWN_VERTICAL
from vip.dataset.statistics import ModelUse
from vip.html.format import date, file_size
from vip.llm.budget import dollars
from vip.wording import counted

MOST_ROWS = 30
KEPT = "\u200c\u200d\n\t"  # the first two join letters and emojis
RETRIES = {"never": "not tried again", "later": "tried again later", "back_off": "tried again, after waiting with its whole host"}
FAILURES = {
    "bad_row": "the row names no video",
    "not_public": "a local path or the private network, refused by --public-only",
    "missing": "no such file, page or id",
    "deleted": "deleted by its owner or its host",
    "private": "private",
    "age": "only for signed-in adults",
    "geo": "not shown in this country",
    "bot_check": "the host took the download for a robot",
    "rate_limit": "the host asked for fewer requests",
    "network": "the connection failed",
    "no_video": "a page without a video, a live stream, a playlist",
    "too_long": "longer than asked for",
    "too_short": "shorter than asked for",
    "too_large": "larger than --disk-budget",
    "download_timeout": "not downloaded in time",
    "unreadable": "nothing to see in it, or damaged",
    "timeout": "not extracted in time",
    "crash": "its process ended without a word",
    "disk": "what was fetched could not be written",
    "duplicate": "the same video as another of the list",
    "caption": "not one keyframe could be described",
    "other": "something else",
}
PAPER = "Himakunthala et al., Let's Think Frame by Frame with VIP, EMNLP 2023"
PUBLISHED = (
    ("MSR-VTT", "no", "no", "Open", "20.7 s", "9.6", "3K"),
    ("YouCook2", "no", "no", "Cooking", "5.26 min", "8.8", "2K"),
    ("ActyNet-Cap", "no", "no", "Open", "2 min", "13.5", "5K"),
    ("HowTo100M", "no", "no", "Instructional", "18 s", "4", "24K"),
    ("VATEX", "no", "no", "Open", "10 s", "15.2", "6K"),
    ("VideoStory", "yes", "no", "Events", "12.6 min", "12.1", "16"),
    ("WebVid-2M", "no", "no", "Open", "18 s", "12", "5K"),
    ("VIP", "yes", "yes", "Open", "3.6 min", "114.2", "1.5K"),
)
"""Table 1 of the paper."""


@dataclass(frozen=True, slots=True)
class DataCard:
    """All that is known of a data set and of its batch."""

    name: str
    out: str
    """Its address without secrets."""
    status: BatchStatus
    counts: DataSetCounts
    distribution: Distribution | None
    settings: BatchConfig | None

    @property
    def is_described(self) -> bool:
        return self.counts.keyframes.described > 0


@dataclass(frozen=True, slots=True)
class CardTable:
    """Rows under a head; the first column names the row. `is_marked`: the last row is this data set."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    is_marked: bool = False


def printable(text: str) -> str:
    """Return the text in one line, without what must not be shown."""
    shown = (letter if letter.isprintable() or letter in KEPT else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return " ".join("".join(shown).split())


def share(part: float, whole: float) -> str:
    """Return `12.3 %`, and a dash for a share of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


# ---------------------------------------------------------------- in numbers


def facts(card: DataCard) -> list[tuple[str, str]]:
    """Return the names and values at the top of the card."""
    status, counts = card.status, card.counts
    words, videos = counts.keyframes, counts.videos
    found = [
        ("Videos", f"{videos.videos:,}"),
        ("Length", duration(videos.lengths_s.total)),
        ("Keyframes", f"{words.keyframes:,}"),
        ("Described", f"{words.described:,} ({share(words.described, words.keyframes)})" if words.described else "none"),
        ("Shards", f"{counts.shards:,} of {' and '.join(counts.files) or 'nothing'}, {file_size(counts.bytes)}"),
        ("Failed", f"{status.failed:,} of {counted(status.chosen, 'video')} ({share(status.failed, status.chosen)})"),
        ("Of the list", f"{status.not_chosen:,} not chosen, {counted(status.bad_rows, 'bad row')}"),
    ]
    if words.described:
        found.append(("Captions", f"{words.tokens.mean or 0:.1f} tokens on average"))
    if status.usd or status.tokens:
        found.append(("Spent", f"{dollars(status.usd)}, {counted(status.tokens, 'token')}"))
    if videos.first_utc:
        found.append(("Made", _days(videos.first_utc, videos.last_utc)))
    return found


def _days(first_utc: str, last_utc: str) -> str:
    """Return `5 March 2025`, or from one day to another."""
    return " – ".join(dict.fromkeys(date(moment).partition(",")[0] for moment in (first_utc, last_utc)))


def compared(card: DataCard) -> CardTable:
    """Return Table 1 of the paper, with this data set as its last row."""
    videos, words = card.counts.videos, card.counts.keyframes
    named = [name for name, _ in videos.verticals.most() if name != UNKNOWN_VERTICAL]
    domain = f"{len(named)} verticals" if len(named) > 2 else " and ".join(named) or "not known"
    length, tokens = videos.lengths_s.mean, words.tokens.mean
    own = (
        card.name,
        "yes",
        "yes" if card.is_described else "no",
        domain,
        "–" if length is None else f"{length:.3g} s" if length < 60 else f"{length / 60:.3g} min",
        "–" if tokens is None else f"{tokens:.1f}",
        _thousands(videos.videos),
    )
    head = ("Data set", "Frame-level", "Structured", "Domain", "Average video", "Tokens a caption", "Samples")
    note = f"The rows above the last are Table 1 of the paper ({PAPER}). Samples are inference samples there, and videos in the last row."
    return CardTable("Beside other data sets", head, (*PUBLISHED, own), f"{note} Tokens are words and punctuation marks.", is_marked=True)


def _thousands(count: int) -> str:
    for unit, power in (("M", 6), ("K", 3)):
        if count >= 0.9995 * 10**power:  # 999,999 would be 1e+03K
            return f"{count / 10**power:.3g}{unit}"
    return str(count)


def verticals(card: DataCard) -> CardTable:
    """Return the shares of Figure 2 of the paper: asked for, chosen, and done."""
    shares = card.distribution.shares if card.distribution and len(card.distribution.shares) > 1 else ()
    done = card.counts.videos.verticals
    rows = [
        (one.vertical, share(one.asked_share, 1), share(one.chosen_share, 1), share(done.counts.get(one.vertical, 0), done.total))
        for one in shares
    ]
    note = "Shares of each vertical; a video in several counts in each. Asked: by the weights. Done: of the videos in the data set."
    return CardTable("Verticals", ("Vertical", "Asked", "Chosen", "Done"), tuple(rows), note)


def failures(card: DataCard) -> CardTable:
    """Return how many videos failed and why, by kind."""
    status = card.status
    rows = tuple(
        (kind, f"{count:,}", share(count, status.chosen + status.bad_rows), _meaning(kind)) for kind, count in status.failures.items()
    )
    note = f"Each is in failures.jsonl with its message and tries. Shares are of {status.chosen + status.bad_rows:,} videos and bad rows."
    return CardTable("Failures", ("Type", "Count", "Share", "Meaning"), rows, note)


def _meaning(kind: str) -> str:
    rules: dict[str, str] = {name: RETRIES[rule] for name, rule in RULES.items()}
    return f"{FAILURES.get(kind, 'something else')}; {rules.get(kind, RETRIES['never'])}"


def models(card: DataCard) -> CardTable:
    """Return the models, and what the descriptions in the data set took of them."""
    rows = tuple(
        (
            model,
            f"{use.calls:,}",
            f"{use.cached:,}",
            *(_at_least(f"{tokens:,}", use.uncounted, use) for tokens in (use.tokens_in, use.tokens_out)),
            _at_least(dollars(use.usd), use.unpriced, use),
            _days(use.first_utc, use.last_utc),
        )
        for model, use in sorted(card.counts.keyframes.models.items(), key=lambda pair: -pair[1].calls)[:MOST_ROWS]
    )
    return CardTable(
        "Models that described", ("Model", "Requests", "Cached", "Tokens in", "Tokens out", "Dollars", "When"), rows, _cost(card)
    )


def _at_least(amount: str, unknown: int, use: ModelUse) -> str:
    """Return the amount as far as it is known: unknown is not zero."""
    return "not known" if 0 < unknown == use.calls - use.cached else f"at least {amount}" if unknown else amount


def _cost(card: DataCard) -> str:
    """Return what a description cost on average."""
    words, whole = card.counts.keyframes, ModelUse()
    if not words.described:
        return ""
    for use in words.models.values():
        whole.merge(use)
    usd = _at_least(dollars(whole.usd / words.described), whole.unpriced, whole)
    tokens = _at_least(f"{(whole.tokens_in + whole.tokens_out) / words.described:,.0f}", whole.uncounted, whole)
    each = f"A keyframe's description on average: dollars {usd}, tokens {tokens}."
    status = card.status
    return each + (
        f" In all {dollars(status.usd)} and {status.tokens:,} tokens were spent, on failed requests too." if status.tokens else ""
    )
