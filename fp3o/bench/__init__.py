"""Measurements of speed behind `fp3o bench`: this machine, beside other packages where installed.

Jobs that are compared alternate, chunk by chunk, and the fastest chunk of each counts. Compare them
as ratios within one run: times on a shared machine vary from run to run.
"""
