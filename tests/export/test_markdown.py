"""Text of others in Markdown shows as it is."""

from __future__ import annotations

import pytest

from vip.export.markdown import escape_markdown


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("openai:gpt-5-mini", "openai:gpt-5-mini"),
        ("<b>a</b> &amp;", "&lt;b&gt;a&lt;/b&gt; &amp;amp;"),
        ("*a* _b_ ~c~ `d` $e$ |", r"\*a\* \_b\_ \~c\~ \`d\` \$e\$ \|"),
        ("[a](b) \\", r"\[a\](b) \\"),
        ("https://a.org WWW.a.org a@b.org", r"https\://a.org WWW\.a.org a\@b.org"),
    ],
)
def test_text_marks_nothing_up(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped
