"""The models that Xiao et al. 2021 compare, each a file to be read beside its paper."""
