"""Images of battles, drawn with Pillow.

| module      | contents                                                    |
|-------------|-------------------------------------------------------------|
| `battle`    | `render_battle`: the complete image                         |
| `scene`     | the scene: positions, directions, targets of all units      |
| `attacks`   | shots, missiles, beams and explosions                       |
| `legend`    | strength of both sides, unit types and counts               |
| `landscape` | the terrain                                                 |
| `sprites`   | unit types from above                                       |
| `drawing`   | colours, lines and text                                     |

Images are drawn at twice their size and then reduced, which smooths the edges; text is drawn
afterwards. Terrain and sprites are cached.
"""
