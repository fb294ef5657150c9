"""The loop of the walk-through, on CPUs: SIGTERM has it saved by Orbax's CheckpointManager at the step where it is, then it ends."""

import os
import sys
import time

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

steps = 100_000


@jax.jit
def train_step(state):
    return {"w": state["w"] * 0.99 + 0.01, "n": state["n"] + 1}


jax.distributed.initialize(os.environ["PITCREW_SERVER_ADDR"], num_processes=1, process_id=0)
state = {"w": jnp.zeros(8), "n": jnp.zeros((), jnp.int32)}
options = ocp.CheckpointManagerOptions(save_interval_steps=1000, max_to_keep=3)
with ocp.CheckpointManager(sys.argv[1], options=options) as manager:
    last = manager.latest_step()
    if last is not None:
        state = manager.restore(last, args=ocp.args.StandardRestore(state))
    first = 0 if last is None else last + 1
    print(f"resume={os.environ.get('PITCREW_RESUME_STEP')} begins={first} trained={int(state['n'])}", flush=True)
    for step in range(first, steps):
        state = train_step(state)
        time.sleep(0.01)
        manager.save(step, args=ocp.args.StandardSave(state))
        with open(sys.argv[2], "w") as f:
            f.write(str(step))
        if step == first + 20:
            print(f"trains in attempt from {first}", flush=True)
        if manager.reached_preemption(step):
            manager.wait_until_finished()
            print(f"saved={manager.latest_step()}", flush=True)
            sys.exit(0)
