"""Environments: interfaces (`api`), batches (`vectorise`), tasks by name (`registry`), families.

A family of tasks is one folder. To add one, write `fp3o/envs/my_family/tasks.py`:

    from fp3o.envs.task import Family, Task
    from fp3o.envs.my_family.env import MyEnv

    def _get(name: str) -> Task | None:
        return Task(f"my_family/{name}", "what the team has to do", lambda variant: MyEnv(name))

    FAMILIES = (Family("my_family", "what its tasks have in common", _get, listed=("easy",)),)

The registry finds it there; `fp3o list`, `train`, `evaluate`, `render` and `check` then know
`my_family/easy`. Presets, baselines and rendering of the family belong in the same folder.
Environments outside this package need no folder: see `adapters`.
"""
