"""The papers' own models: built, trained and run from features of videos (torch). Nothing here is loaded by `vip --help`."""
