"""NExT-QA: questions about causes, order and content of videos, with options or open-ended (Xiao et al. 2021).

`files` reads what the authors published, as it is. `mc` and `oe` are the two tasks. `baselines` answers without looking at a video,
`statistics` describes a set of questions, `distractors` makes options for questions of one's own, and `tables` are those of the paper.
"""
