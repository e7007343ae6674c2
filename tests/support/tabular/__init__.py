"""Exact tabular cooperative games: everything is computed, nothing is sampled.

Axes: any leading batch of games, then `n` agents, `s` states, `a` actions of one agent, `m = a**n`
joint actions (agent 0 varies slowest). A joint policy is an array `(..., n, s, a)`, a function of
state and joint action an array `(..., s, m)`, a split of the advantage an array `(..., n, s, m)`.
`pi_k` is the policy before an iteration, `half` the one after the independent step, `new` the one
after the dependent step. Sharing is a tuple that maps each agent to its group; agents of a group
play one common policy: `(0, 1, 2)` shares nothing, `(0, 0, 0)` shares everything.
"""
