"""What the papers measure: one file a metric, each tested against published values.

In: pairs of a prediction and its reference, the whole list at once. Out: a `Result` with the value, the value of each pair, how many
predictions had no answer, and a signature that says what must be equal for two values to be comparable.

    from vip.metrics import Pair
    from vip.metrics.rouge_l import RougeL

    result = RougeL().score([Pair("a dog runs", "the dog runs fast")])

Libraries are imported when a metric is asked for. `statistics` gives the error bars.
"""

from vip.metrics.metric import Metric, Pair, Result, Status

__all__ = ["Metric", "Pair", "Result", "Status"]
