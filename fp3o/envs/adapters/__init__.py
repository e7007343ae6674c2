"""Adapters: environments of other libraries, and custom ones, as tasks.

| family       | environments                                   | contract                      |
|--------------|------------------------------------------------|-------------------------------|
| `python`     | a custom `Env` or `HostEnv`, by import path    | its own                       |
| `pettingzoo` | PettingZoo `ParallelEnv`, by import path       | `HostEnv`, optionally workers |
| `gymnasium`  | Gymnasium environments by id: a team of one    | `HostEnv`                     |
| `jaxmarl`    | JaxMARL environments by name                   | `Env`                         |
| `jumanji`    | multi-agent Jumanji environments by name       | `Env`                         |

The module of a family has a `make_env(name, variant)`; the options of its variant are read by
`variants`.
"""
