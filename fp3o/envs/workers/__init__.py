"""Host environments in worker processes or in-process, as one batch.

| module          | what it holds                                                         |
|-----------------|-----------------------------------------------------------------------|
| `protocol`      | what a worker's environment is and replies; failures and timeouts     |
| `shared_memory` | actions and replies in memory shared with a worker                    |
| `serve`         | the loop of a worker process                                          |
| `worker`        | one worker process, as its parent sees it                             |
| `pool`          | workers that are stepped together; failed ones are replaced           |
| `in_process`    | the same without processes                                            |
| `vec_env`       | the `VecEnv` of a pool                                                |

Worker processes import `serve`, which needs NumPy only, so that they start quickly.
"""
