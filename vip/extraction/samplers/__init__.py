"""Samplers: the choice of the frames that become candidates."""
