"""The bodies: their joint graphs, the partitions of their joints, and their tasks.

`paper` and `farama` are the two profiles. They differ in observations and in details of the tasks;
every difference is an explicit branch here, in `rewards` or in `models`.
"""
