"""The six algorithms as data: which agents are updated when, and what each update maximises.

Reading order: `row` (what an algorithm is), `table` (the six of them), `schedules` (when agents are
updated), `surrogates` (what is maximised), `fp3o` (the condition between FP3O's two steps).
"""
