"""Detectors and the engine of the transformers library, in this process."""
