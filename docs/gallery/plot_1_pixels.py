"""
Colours of a photograph
=======================

The pixels of a photograph are samples of three variables, red, green and blue, and no Gaussian: values lie between 0
and 1, pile up at the ends, and cluster about the colours of sky, stone and leaves. The paper that introduced ISODUS
names colours of pixels among data that call for more than a Gaussian. The picture ships with scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_sample_image

from isodus import ISODUS, compare

# %%
# Samples
# -------
#
# Every fourth pixel in both directions. The camera rounded each value to one of 256; a number within the rounding is
# added, since a density knows no steps. Neighbouring pixels are alike, so these rows are not independent: estimates do
# not suffer from it, but standard errors are too small, those of scores too.

rng = np.random.default_rng(0)
picture = load_sample_image("china.jpg")[::4, ::4]
values = (picture.reshape(-1, 3) + rng.uniform(-0.5, 0.5, (picture.size // 3, 3))) / 255
X = pd.DataFrame(values, columns=["red", "green", "blue"])
learn = rng.permutation(len(X)) < len(X) // 2
X.describe().round(3)

# %%
# A Gaussian and a quartic
# ------------------------
#
# Both learn from one half of the pixels. `isodus.compare` scores them on the other half by log P(one channel | the
# other two).

fits = {f"degree {degree}": ISODUS(degree=degree).fit(X[learn]) for degree in (2, 4)}
result = compare(fits, X[~learn])
print(result.verdict)
result.table[["name", "n_terms", "score", "stderr", "difference", "z"]]

# %%
# What is gained can be seen in the distribution of red where green and blue are given. The Gaussian has one width for
# all pixels, the quartic another for each; neither has all of the shape that the pixels have.

some = pd.DataFrame({"red": np.nan, "green": [0.15, 0.5, 0.9], "blue": [0.1, 0.5, 0.95]})
red = np.linspace(0, 1.1, 300)
figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), layout="constrained", sharex=True)
for k, ax in enumerate(axes):
    near = np.abs(X[["green", "blue"]] - some.loc[k, ["green", "blue"]]).max(axis=1) < 0.03
    ax.hist(X["red"][near], 30, density=True, color="0.85", label=f"{near.sum()} pixels within 0.03")
    for name, est in fits.items():
        ax.plot(red, est.model_.conditional("red", some).pdf(red[None, :])[k], label=name)
    ax.set_title(f"green {some.green[k]:.2f}, blue {some.blue[k]:.2f}", fontsize=10)
    ax.set_xlabel("red")
    ax.legend(fontsize=7)
plt.show()

# %%
# One channel from the other two
# ------------------------------
#
# Take red away and put the mean of its distribution in its place, pixel by pixel.

shown = {"as it was": picture / 255}
for name, est in fits.items():
    filled = X.copy()
    filled["red"] = est.model_.conditional("red", X).mean()
    error = np.sqrt(np.mean((filled["red"] - X["red"])[~learn] ** 2))
    shown[f"red by {name}: rms error {error:.4f}"] = filled.to_numpy().reshape(picture.shape).clip(0, 1)
figure, axes = plt.subplots(1, 3, figsize=(10, 2.6), layout="constrained")
for ax, (title, image) in zip(axes, shown.items(), strict=True):
    ax.imshow(image)
    ax.set_title(title, fontsize=9)
    ax.set_axis_off()
plt.show()

# %%
# The means differ little, and a regression with a few powers would do as well: what the model adds is the whole
# distribution, above. What it does not do: values pile up at 0 and 1, which no density on the line has, and new
# samples of this model are not as good as its conditionals. :doc:`/benchmarks` has figures.
