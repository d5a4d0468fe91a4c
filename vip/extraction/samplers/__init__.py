"""Which frames become candidates, beside the sampler `sync` (vip.extraction.samplers.sync)."""
