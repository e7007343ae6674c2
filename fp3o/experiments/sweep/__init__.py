"""Search over the settings of training: trials that share one compiled program as its seeds.

| module        | contents                                                                  |
|---------------|---------------------------------------------------------------------------|
| `space.py`    | what is searched: ranges and choices of settings                          |
| `settings.py` | everything that defines a sweep                                           |
| `study.py`    | optuna: proposals, reports, pruning, results                              |
| `queue.py`    | trials that wait, by the program they need                                |
| `lanes.py`    | the trials of one program, side by side                                   |
| `loop.py`     | training of all trials, with checkpoints                                  |
| `folder.py`   | the files of a sweep                                                      |
| `launch.py`   | starting and continuing a sweep; `fp3o.sweep`                             |
| `batch.py`, `remote.py`   | trials on the nodes of a Ray cluster                          |
| `result.py`   | the trials and the best of them                                           |
| `figures.py`, `parallel.py`, `report.py` | the page of a sweep                            |
"""
