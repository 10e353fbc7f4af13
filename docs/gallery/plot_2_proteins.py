"""
Proteins, with hypothesis tests
===============================

Eleven proteins in single cells (Sachs et al., 2005). Which pairs interact, how surely, and is the network another one
when the cells are treated otherwise? :doc:`/sachs` asks more of the same data.
"""

import warnings

import matplotlib.pyplot as plt

from isodus import ISODUS, compare_groups
from isodus.datasets import load_sachs
from isodus.metrics import partial_correlations

# %%
# 853 cells of the first of nine conditions, log10 of fluorescence.

cells = load_sachs(condition=True)
first, second = (cells[cells["condition"] == k].drop(columns="condition") for k in (1, 2))
print(f"{len(first)} and {len(second)} cells of {first.shape[1]} proteins")

# %%
# One fit, and what it says
# -------------------------
#
# The library warns about these data. The warnings are worth reading: some proteins have tails that no polynomial
# holds, and two have cells at the detection limit.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    est = ISODUS(degree=4).fit(first)
for warning in caught:
    print("-", warning.message)

# %%
# A pair has up to six terms. `interactions` tests all terms of a pair at once (Wald's test) and adds the false
# discovery rate among all pairs.

pairs = est.model_.interactions()
pairs[pairs["q_value"] < 0.05].round({"strength": 2, "chi2": 0})

# %%
# Every line below is one pair; thick lines are strong, faint ones not sure.

est.model_.plot("graph")
plt.show()

# %%
# The same question to a Gaussian: partial correlations, with intervals and the same correction.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the same as above
    gaussian = ISODUS(degree=2).fit(first)
table = partial_correlations(gaussian.model_)
table[table["q_value"] < 0.05]

# %%
# Does treatment change the network?
# ----------------------------------
#
# `compare_groups` fits both conditions in the same units and tests every difference. At degree 2, so that it says
# which means, variances and couplings changed.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the same again
    change = compare_groups(first, second, ISODUS(degree=2))
print(change.verdict)
change.different().query("order == 2").head(10)

# %%
# p-values are those of independent cells and of a model that holds. That cells are independent is taken for granted
# here, and the model does not fit in every respect (:doc:`/sachs`), so take small p-values as a ranking rather than as
# odds.
