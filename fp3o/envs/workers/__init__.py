"""Host environments in worker processes or in-process, as one batch.

| module          | contents                                                              |
|-----------------|-----------------------------------------------------------------------|
| `protocol`      | the interface of a worker's environment; failures and timeouts        |
| `shared_memory` | actions and replies in memory shared with a worker                    |
| `messages`      | replies and failures that workers report                              |
| `serve`         | the loop of a worker process                                          |
| `watchdog`      | a process that ends workers whose parent has ended                    |
| `worker`        | the parent's handle to one worker process                             |
| `pool`          | workers that are stepped together; failed ones are replaced           |
| `in_process`    | the same without processes                                            |
| `vec_env`       | the `VecEnv` of a pool                                                |

Worker processes import `serve`, which needs NumPy only, so that they start quickly.
"""
