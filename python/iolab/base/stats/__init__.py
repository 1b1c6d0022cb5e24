# SPDX-License-Identifier: Apache-2.0
"""Statistics: arrays in, values out. Knows no file format, no run and no metric.

Modules use `scipy.special` and `scipy.optimize` by their full names after `import scipy`, which loads
them at their first use: scipy.special takes 0.26 s, twice as long as numpy, because it loads
numpy.f2py, and single results need no distribution."""
