"""The battle simulator: unit movement and combat in JAX, sixteen game loops per second.

| module       | contents                                                              |
|--------------|-----------------------------------------------------------------------|
| `battle`     | the static description of a battle: statistics, damage table, terrain |
| `state`      | the state of all units and the orders they are given                  |
| `loop`       | one game loop, and one environment step of eight loops                |
| `targeting`  | which unit attacks which                                              |
| `movement`   | where units walk: towards targets and goals, around walls             |
| `collisions` | units pushing each other apart, and walls                             |
| `combat`     | when attacks hit, by weapon, and who dies                             |
| `healing`    | units that heal allies                                                |
| `damage`     | damage per hit: shields, armour, regeneration                         |
| `random_start` | teams and initial positions drawn for an episode                    |

Allies come first in every array. In annotations `a` is the axis of allies, `v` of enemies and `u`
of all units. Both sides follow the same rules, and all events of a loop happen simultaneously.
"""
