"""Descriptions of keyframes (section 3.2): measured facts, dense caption, FAMOuS."""
