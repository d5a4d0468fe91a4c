"""The page that a person looks at: of a run, of a comparison, of a folder of runs."""
