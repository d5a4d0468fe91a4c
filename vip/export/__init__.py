"""Keyframes in the formats of other programs: one module a format. Read `write` first."""
