"""The models of FIBER: T5 on the caption alone, and with features of the video (Castro et al. 2022, section 4)."""
