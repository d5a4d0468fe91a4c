"""The largest size of a picture: beyond that, a damaged or hostile header would have memory allocated for nothing."""

from __future__ import annotations

from fractions import Fraction

from vip.errors import InputError

MOST_PIXELS = 2**28  # x 3 bytes = 805 MB as RGB; 8K video has 33 million pixels, the largest pictures of phones 200 million
TOO_LARGE = (
    "{} states no size of its pictures, or one beyond the "
    f"{MOST_PIXELS // 10**6} million pixels that vip reads, and none can be decoded. Its header is damaged."
)


def check_size(name: str, width: int, height: int, pixel_aspect: Fraction = Fraction(1)) -> None:
    """Refuse a picture that is too large, as stored or as displayed.

    Raises:
        InputError: it is too large.
    """
    if width * height * max(pixel_aspect, 1 / pixel_aspect) > MOST_PIXELS:
        stretched = f" with pixels stretched {pixel_aspect}" if pixel_aspect != 1 else ""
        raise InputError(
            f"{name} claims pictures of {width}x{height} pixels{stretched}, and vip reads up to {MOST_PIXELS // 10**6} million pixels."
            " Its header is damaged, or it must be scaled down first."
        )
