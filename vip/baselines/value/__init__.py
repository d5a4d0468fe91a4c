"""HERO, the model that Li et al. 2021 train on the eleven tasks of VALUE, and the fusions it is compared with."""
