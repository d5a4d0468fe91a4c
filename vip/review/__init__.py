"""The page where people check, correct and agree, and the log of what they did (section 3.3, appendix A.1)."""
