"""The battle simulator: unit movement and combat in JAX, sixteen game loops per second.

| module         | contents                                                               |
|----------------|------------------------------------------------------------------------|
| `battle`       | the description of a battle: types of its units, damage table, terrain |
| `stats`        | statistics of units as arrays                                          |
| `random_start` | teams and initial positions, drawn for an episode                      |
| `state`        | the state of all units and the orders they are given                   |
| `loop`         | one game loop, and one environment step of eight loops                 |
| `targeting`    | which unit attacks which                                               |
| `movement`     | where units walk: towards targets and goals, around walls              |
| `collisions`   | units pushing each other apart, and walls                              |
| `combat`       | when attacks hit, by weapon, and who dies                              |
| `damage`       | damage per hit: shields, armour, regeneration                          |
| `healing`      | units that heal allies                                                 |

Allies come first in every array. In annotations `a` is the axis of allies, `v` of enemies and `u`
of all units. Both sides follow the same rules, and all events of a loop happen simultaneously.
"""
