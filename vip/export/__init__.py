"""From keyframes to what other programs read: one module a format. `write` has what they share."""
