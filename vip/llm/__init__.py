"""The engine room: who is asked how often, what was answered, what it costs."""
