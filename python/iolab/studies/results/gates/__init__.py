# SPDX-License-Identifier: Apache-2.0
"""Gates: each looks at one way in which a run's numbers can lie. One file each, its definition in
its docstring."""
