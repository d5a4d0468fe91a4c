"""Find moments in runs and data sets, and answer questions with frames that are cited."""
