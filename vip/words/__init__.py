"""Words that go with the pictures: subtitles in a video or beside it, and which of them stand around each keyframe."""
