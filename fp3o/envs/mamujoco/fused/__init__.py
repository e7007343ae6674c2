"""Steps of a body's environments as one kernel for a CPU or a GPU (`backend=fused`).

| file              | contents                                                              |
|-------------------|-----------------------------------------------------------------------|
| `physics.h`       | a simulation step in double precision, in C++ and CUDA                |
| `environment.h`   | an environment step: reward, ends, starts, observations               |
| `target.cpp`      | the same for a batch, as a function that XLA calls                    |
| `model_header`    | sizes and tables of a MuJoCo model, as C                              |
| `task_header`     | and of a task                                                         |
| `build`           | compiles them for the machine, keeps the result, gives it to JAX      |
| `env`             | `FusedEnv`: the environment                                           |
"""
