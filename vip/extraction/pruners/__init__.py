"""The pruners: which of the good frames are dropped until enough are left (section 3.1)."""
