"""Steps of a body's environments as one kernel for a CPU or a GPU (`backend=fused`).

| file              | contents                                                              |
|-------------------|-----------------------------------------------------------------------|
| `lanes.h`         | C++ and CUDA: how the threads of a GPU share a simulation             |
| `scratch.h`       | intermediate results of a simulation                                  |
| `algebra.h`       | rotations and spatial vectors                                         |
| `dynamics.h`      | mass matrix and forces                                                |
| `constraints.h`   | contacts, limits of joints, and the solver                            |
| `integration.h`   | a simulation step                                                     |
| `environment.h`   | an environment step: reward, ends, starts, observations               |
| `target.cpp`      | the same for a batch, as a function that XLA calls                    |
| `model_header`    | sizes and tables of a MuJoCo model, as C                              |
| `floor`           | which parts of a model can touch the floor                            |
| `supported`       | what a model must not have                                            |
| `task_header`     | and of a task                                                         |
| `build`           | compiles them for the machine, keeps the result, gives it to JAX      |
| `env`             | `FusedEnv`: the environment                                           |
"""
