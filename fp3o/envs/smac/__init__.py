"""SMAC in JAX: the published maps and rules of the StarCraft Multi-Agent Challenge.

Every map is an `Env` of pure functions, so thousands of battles run in one program on an
accelerator. Unit statistics, maps, observations, rewards and action masks are those of SMAC; the
battle itself is simulated here, without StarCraft II. `fp3o.envs.starcraft2` runs the same maps in
the game. Teams can also be drawn for every episode, as in SMACv2.

| module         | contents                                                            |
|----------------|---------------------------------------------------------------------|
| `env`          | `SmacEnv`: actions, rewards, ends of episodes                       |
| `random_env`   | `RandomTeamsEnv`: the same with teams drawn for every episode       |
| `simulator`    | the battle: targets, movement, collisions, weapons, damage          |
| `actions`      | actions, and which of them are available                            |
| `observations` | `ObservationBuilder`: observations, states and action masks         |
| `host_layout`  | the paper's observations in NumPy, for StarCraft II                 |
| `maps`         | the published maps: teams and initial positions                     |
| `rules`        | options of a battle: targets, calls for help, backswing, healing     |
| `random_teams` | tasks of SMACv2: races, team sizes, sizes of observations           |
| `units`        | statistics of the unit types                                        |
| `terrain`      | walkable cells, distances to walls, routes (`terrain_data`: levels) |
| `scripted`     | scripted teams, the baselines                                       |
| `tasks`        | tasks and presets                                                   |
| `render`       | images of battles                                                   |
"""
